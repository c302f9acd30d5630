import { defineConfig } from "vite";

// Built into dist/; tools/place.mjs puts it where the wheel takes it from.
export default defineConfig({
  base: "./",
  build: {
    target: "es2022",
    outDir: "dist",
    assetsDir: "assets",
    manifest: "modules.json",
    sourcemap: false,
    cssCodeSplit: true,
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
});
