// The reader's zone, so that already the first page after the sign-in tells times in it.
"use strict";
document.cookie = `tz=${encodeURIComponent(Intl.DateTimeFormat().resolvedOptions().timeZone)}; path=/; max-age=31536000; samesite=lax`;
