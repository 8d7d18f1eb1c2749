// The dialog that asks for the token. Whoever asks while it is open waits for the same answer.

const $ = id => document.getElementById(id);
let asked = null;

// What was typed, or null when it was cancelled.
export function askForToken(why) {
  $("token-why").textContent = why;
  asked ??= new Promise(resolve => {
    const dialog = $("token-dialog"), field = $("token");
    const end = given => {
      field.value = "";
      dialog.close();
      asked = null;
      resolve(given);
    };
    $("token-form").onsubmit = event => {
      event.preventDefault();
      end(field.value.trim());
    };
    $("token-cancel").onclick = () => end(null);
    dialog.oncancel = event => {
      event.preventDefault();
      end(null);
    };
    dialog.showModal();
    field.focus();
  });
  return asked;
}
