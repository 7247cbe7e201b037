// Before the page is painted: the theme that was chosen here, and that there are scripts.
"use strict";
document.documentElement.classList.add("js");
try {
  const theme = localStorage.getItem("hearsay-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch { /* no storage: the system's theme */ }
