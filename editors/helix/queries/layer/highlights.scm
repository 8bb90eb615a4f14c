; inherits: nix
