-- Neovim 0.11 or newer: put this file into ~/.config/nvim/plugin/.
vim.filetype.add({ extension = { layer = "layer" } })

vim.lsp.config("envdsl", {
  cmd = { "envdsl", "lsp" },
  filetypes = { "layer" },
  root_markers = { "envdsl.toml", "layers.d", ".git" },
})
vim.lsp.enable("envdsl")

vim.api.nvim_create_autocmd("FileType", {
  pattern = "layer",
  callback = function(event)
    vim.bo[event.buf].commentstring = "# %s"
    vim.bo[event.buf].shiftwidth = 2
    vim.bo[event.buf].expandtab = true
    -- The grammar of Nix, where it is installed (`:TSInstall nix`), reads most of a layer file.
    pcall(vim.treesitter.start, event.buf, "nix")
  end,
})

vim.api.nvim_create_autocmd("BufWritePre", {
  pattern = "*.layer",
  callback = function(event)
    vim.lsp.buf.format({ bufnr = event.buf, name = "envdsl" })
  end,
})
