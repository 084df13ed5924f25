"""Every address of the product."""

from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("runtime_app.api.urls")),
    path("", include("runtime_app.console.urls")),
]
handler400 = "runtime_app.console.errors.bad_request"
handler403 = "runtime_app.console.errors.forbidden"
handler404 = "runtime_app.console.errors.not_found"
handler500 = "runtime_app.console.errors.failed"
