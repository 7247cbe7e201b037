/** Rules of our own for the package; what a compiler can see is left to `tsc`. */

import parser from "@typescript-eslint/parser";

import exact from "./eslint/exact.js";
import random from "./eslint/random.js";

const hearsay = { rules: { exact, random } };

export default [
  { ignores: ["build", "dist", "node_modules"] },
  { linterOptions: { noInlineConfig: true } }, // no comment switches a rule off
  {
    files: ["src/**/*.ts"],
    languageOptions: { parser, parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    plugins: { hearsay },
    rules: { "hearsay/random": "error" },
  },
  {
    files: ["src/mechanisms/**/*.ts", "src/core/exact.ts", "src/core/randomness.ts"],
    rules: { "hearsay/exact": "error" },
  },
];
