/** ESLint rule: nothing but the system's entropy is random, so no Math.random, by whatever name. */

export default {
  meta: { type: "problem", schema: [], messages: { random: "Math.random is predictable: draw from a ByteSource." } },
  create(context) {
    const { sourceCode } = context;
    const isMath = (node) => node.type === "Identifier" && node.name === "Math";
    const report = (node) => context.report({ node, messageId: "random" });

    /** A member of Math is fine if it is another one, named on the spot. */
    const isHarmless = ({ parent }) =>
      parent.type === "MemberExpression" &&
      isMath(parent.object) &&
      (parent.computed
        ? parent.property.type === "Literal" && parent.property.value !== "random"
        : parent.property.name !== "random");

    return {
      Identifier(node) {
        const isKey = node.parent.type === "MemberExpression" && node.parent.property === node && !node.parent.computed;
        if (!isMath(node) || sourceCode.getScope(node).set.has("Math")) return;
        if (isKey || !isHarmless(node)) report(node); // globalThis.Math, const { random } = Math, f(Math)
      },
      "MemberExpression > Literal[value='Math']": report,
    };
  },
};
