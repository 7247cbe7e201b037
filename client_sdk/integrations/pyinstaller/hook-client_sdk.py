"""What a bundle must hold, though no import statement names it: mechanisms are loaded by name."""

from PyInstaller.utils.hooks import collect_submodules

hiddenimports = collect_submodules("client_sdk.mechanisms")
