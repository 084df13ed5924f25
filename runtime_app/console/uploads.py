"""Files that people bring are cut off while they come in: what is too large is never held, in memory or on disk."""

from __future__ import annotations

from typing import Any

from django.core.files.uploadhandler import FileUploadHandler, StopUpload
from django.http import HttpRequest

MOST = 20 * 1024 * 1024  # bytes of all files of one form


class BoundedUpload(FileUploadHandler):
    """Stands in front of the handlers that keep a file. The form is read on without the file; `too_large` says why."""

    def __init__(self, request: HttpRequest | None = None) -> None:
        super().__init__(request)
        self.taken = 0

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        self.taken += len(raw_data)
        if self.taken > MOST:
            setattr(self.request, _MARK, True)
            raise StopUpload(connection_reset=False)
        return raw_data

    def file_complete(self, file_size: int) -> Any:
        return None


_MARK = "_upload_too_large"


def too_large(request: HttpRequest) -> bool:
    """Whether a file of this form was cut off."""
    return bool(getattr(request, _MARK, False))
