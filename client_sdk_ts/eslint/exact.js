/**
 * ESLint rule: what is drawn by is whole numbers, as a float leaks what it rounds.
 *
 * Numbers of JavaScript are floats.  They may be counted on as indices and sizes, and by the bitwise
 * operators, which work on 32 bits; all other arithmetic, and every comparison by size, is of bigints.
 * Source: Mironov, *On Significance of the Least Significant Bits for Differential Privacy*, CCS 2012.
 */

import ts from "typescript";

const ARITHMETIC = new Set(["+", "-", "*", "/", "%", "**"]);
const SIZE = new Set(["<", "<=", ">", ">="]);
const BANNED = new Set([
  ...["Math", "parseFloat", "parseInt", "Float16Array", "Float32Array", "Float64Array"],
  ...["Date", "performance", "crypto", "eval", "Function", "globalThis", "require"],
]);
const MODULES = /^\.\/[a-z_]+\.js$|^\.\.\/core\/(bytes|errors|exact|hashing|randomness)\.js$/;

export default {
  meta: {
    type: "problem",
    schema: [],
    messages: {
      arithmetic: "'{{operator}}' of numbers is floating point: take bigints.",
      power: "Some compilers make Math.pow of '**': take power().",
      literal: "{{raw}} is no whole number.",
      name: "'{{name}}' has no place where chances are drawn.",
      module: "'{{name}}' is no module of exact numbers.",
      conversion: "A bigint becomes a number as an index or argument only.",
    },
  },
  create(context) {
    const services = context.sourceCode.parserServices;

    /** Whether all that `node` may be is of the kind that `flags` name; any and unknown are not. */
    const is = (node, flags) => {
      const type = services.getTypeAtLocation(node);
      const parts = type.isUnion() ? type.types : [type];
      return parts.every((part) => (part.flags & flags) !== 0);
    };
    const isBigInt = (node) => is(node, ts.TypeFlags.BigIntLike);
    const isText = (node) => is(node, ts.TypeFlags.StringLike);

    const check = (node, operator, ...operands) => {
      if (operator === "**") return context.report({ node, messageId: "power" });
      if (operands.every(isBigInt) || (operator === "+" && operands.every(isText))) return;
      context.report({ node, messageId: "arithmetic", data: { operator } });
    };

    return {
      "ImportDeclaration, ImportExpression, ExportNamedDeclaration[source], ExportAllDeclaration"({ source }) {
        if (!MODULES.test(source.value)) context.report({ node: source, messageId: "module", data: { name: source.value ?? "import" } });
      },
      BinaryExpression(node) {
        if (ARITHMETIC.has(node.operator) || SIZE.has(node.operator)) check(node, node.operator, node.left, node.right);
      },
      AssignmentExpression(node) {
        const operator = node.operator.slice(0, -1);
        if (ARITHMETIC.has(operator)) check(node, operator, node.left, node.right);
      },
      UpdateExpression(node) {
        check(node, node.operator, node.argument);
      },
      UnaryExpression(node) {
        const isSign = node.operator === "-" || node.operator === "+";
        if (isSign && node.argument.type !== "Literal") check(node, node.operator, node.argument);
      },
      Literal(node) {
        if (typeof node.value !== "number" || Number.isSafeInteger(node.value)) return;
        context.report({ node, messageId: "literal", data: { raw: node.raw } });
      },
      Identifier(node) {
        const isProperty = node.parent.type === "MemberExpression" && node.parent.property === node && !node.parent.computed;
        if (isProperty ? /Float/.test(node.name) : BANNED.has(node.name)) {
          context.report({ node, messageId: "name", data: { name: node.name } });
        }
        if (isProperty || node.name !== "Number") return;
        const call = node.parent;
        const isCall = call.type === "CallExpression" && call.callee === node && call.arguments.length === 1 && isBigInt(call.arguments[0]);
        const isIndex = call.parent.type === "MemberExpression" && call.parent.property === call;
        const isArgument = call.parent.type === "CallExpression" && call.parent.arguments.includes(call);
        if (!isCall || !(isIndex || isArgument)) context.report({ node, messageId: "conversion" });
      },
    };
  },
};
