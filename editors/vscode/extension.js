// Starts `envdsl lsp` for layer files. Everything else is the server's.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const [command, ...args] = workspace.getConfiguration("envdsl").get("command");
  client = new LanguageClient("envdsl", "envdsl", { command, args }, { documentSelector: [{ language: "layer" }] });
  return client.start();
};

exports.deactivate = () => client && client.stop();
