// The link that is printed at the start holds the token behind #, which browsers do not send.
"use strict";
const token = new URLSearchParams(location.hash.slice(1)).get("token");
const field = document.querySelector("input[name=token]");
if (token && field) {
  history.replaceState(null, "", location.pathname + location.search);
  field.value = token;
  // Sent only if no other site led here: its link could log a reader in as somebody else.
  if (field.form.hasAttribute("data-own")) field.form.requestSubmit();
  else {
    if (field.closest("details")) field.closest("details").open = true;
    field.form.querySelector("button").focus();
  }
}
