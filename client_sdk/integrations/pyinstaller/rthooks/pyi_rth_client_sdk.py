"""Runs in a bundle before the application does: in the child of a bundle, it is all that runs."""

from client_sdk.recording.detached import begin_bundle

begin_bundle()
