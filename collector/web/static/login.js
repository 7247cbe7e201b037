// A link that was printed at the start holds the token behind #, which is sent to nobody.
"use strict";
const token = new URLSearchParams(location.hash.slice(1)).get("token");
const field = document.querySelector("input[name=token]");
if (token && field) {
  history.replaceState(null, "", location.pathname + location.search);
  field.value = token;
  // Not sent from here: a link of another site could otherwise log its reader in as somebody else.
  field.form.querySelector("button").focus();
}
