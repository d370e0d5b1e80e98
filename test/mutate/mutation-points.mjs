// Finds the mutations of a source file. All of them are written into one text, each behind a condition that checks
// whether it is active, so that a file is compiled once for all mutants.
import ts from 'typescript-5.9';

const { SyntaxKind } = ts;

const OPERATORS = new Map([
  [SyntaxKind.LessThanToken, ['boundary', '<=']],
  [SyntaxKind.LessThanEqualsToken, ['boundary', '<']],
  [SyntaxKind.GreaterThanToken, ['boundary', '>=']],
  [SyntaxKind.GreaterThanEqualsToken, ['boundary', '>']],
  [SyntaxKind.EqualsEqualsEqualsToken, ['comparison', '!==']],
  [SyntaxKind.ExclamationEqualsEqualsToken, ['comparison', '===']],
  [SyntaxKind.AmpersandAmpersandToken, ['logic', '||']],
  [SyntaxKind.BarBarToken, ['logic', '&&']],
  [SyntaxKind.MinusToken, ['arithmetic', '+']],
  [SyntaxKind.AsteriskToken, ['arithmetic', '/']],
]);

const LITERALS = new Map([
  ['true', 'false'],
  ['false', 'true'],
  ['0', '1'],
  ['1', '2'],
  ["''", "'mutant'"],
]);

/**
 * Returns the text with all mutations, and a list of `{ id, kind, line, source, from, to }`. Ids start at `firstId`;
 * `globalThis.__mutant(id)` returns whether a mutation is active.
 */
export function addMutants(path, text, firstId) {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.ES2022, true);
  const lines = text.split('\n');
  const mutants = [];
  return { text: render(file), mutants };

  function render(node) {
    const mutations = ts.isExpression(node) ? mutationsOf(node) : [];
    const ids = mutations.map((mutation) => addMutant(node, mutation));
    const inner = renderInside(node);
    return mutations.reduceRight(
      (rest, { to }, at) => `(globalThis.__mutant?.(${ids[at]})?(${to}):${rest})`,
      inner,
    );
  }

  function renderInside(node) {
    let position = node.getFullStart();
    let written = '';
    ts.forEachChild(node, (child) => {
      if (isWithoutCode(child)) return;
      const start = child.getStart();
      written += text.slice(position, start) + render(child);
      position = child.getEnd();
    });
    const whole = written + text.slice(position, node.getEnd());
    return node === file ? whole : whole.slice(node.getStart() - node.getFullStart());
  }

  function addMutant(node, { kind, to }) {
    const { line } = file.getLineAndCharacterOfPosition(node.getStart());
    const id = firstId + mutants.length;
    mutants.push({ id, kind, line: line + 1, source: lines[line].trim(), from: node.getText(), to });
    return id;
  }
}

function isWithoutCode(node) {
  return (
    (ts.isTypeNode(node) && !ts.isExpressionWithTypeArguments(node)) ||
    ts.isTypeParameterDeclaration(node) ||
    ts.isInterfaceDeclaration(node) ||
    ts.isTypeAliasDeclaration(node) ||
    ts.isImportDeclaration(node) ||
    ts.isExportDeclaration(node)
  );
}

function mutationsOf(node) {
  const raw = node.getText();
  return [
    ...conditionMutations(node, raw),
    ...operatorMutations(node),
    ...literalMutations(node, raw),
    ...positionMutations(node, raw),
    ...spreadMutations(node),
  ];
}

function conditionMutations(node, raw) {
  const { parent } = node;
  const isCondition = parent.condition === node || (ts.isIfStatement(parent) && parent.expression === node);
  const isLoop = (ts.isWhileStatement(parent) || ts.isDoStatement(parent)) && parent.expression === node;
  if (!isCondition && !isLoop) return [];
  const negated = { kind: 'condition', to: `!(${raw})` };
  if (!ts.isIfStatement(parent) || parent.elseStatement !== undefined) return [negated];
  return endsEarly(parent.thenStatement) ? [negated, { kind: 'early exit', to: 'false' }] : [negated];
}

/** Whether a statement ends in `return`, `throw`, `break` or `continue`. */
function endsEarly(statement) {
  const last = ts.isBlock(statement) ? statement.statements.at(-1) : statement;
  return (
    last !== undefined &&
    (ts.isReturnStatement(last) ||
      ts.isThrowStatement(last) ||
      ts.isBreakStatement(last) ||
      ts.isContinueStatement(last))
  );
}

function operatorMutations(node) {
  if (!ts.isBinaryExpression(node)) return [];
  const [left, right] = [node.left.getText(), node.right.getText()];
  const operator = node.operatorToken.kind;
  if (operator === SyntaxKind.QuestionQuestionToken) {
    // `undefined` and `false` usually behave alike.
    const halves = right === 'false' ? [right] : [left, right];
    return halves.map((to) => ({ kind: 'fallback', to }));
  }
  const replacement = OPERATORS.get(operator);
  if (replacement === undefined) return [];
  // `conditionMutations` already negates a comparison that is a whole condition.
  if (replacement[0] === 'comparison' && conditionMutations(node, '').length > 0) return [];
  return [{ kind: replacement[0], to: `(${left}) ${replacement[1]} (${right})` }];
}

function literalMutations(node, raw) {
  const to = LITERALS.get(raw);
  const isName =
    node.parent.name === node || node.parent.propertyName === node || ts.isLiteralTypeNode(node.parent);
  return to === undefined || isName ? [] : [{ kind: 'literal', to }];
}

/** Removes a statement with an effect, or the value that a function returns. */
function positionMutations(node, raw) {
  const { parent } = node;
  if (ts.isExpressionStatement(parent))
    return hasEffect(node) ? [{ kind: 'statement', to: 'undefined' }] : [];
  const isReturned = ts.isReturnStatement(parent) || (ts.isArrowFunction(parent) && parent.body === node);
  if (!isReturned || raw === 'undefined' || LITERALS.has(raw)) return [];
  return [{ kind: 'returned', to: 'undefined' }];
}

function hasEffect(expression) {
  if (ts.isAwaitExpression(expression) || ts.isVoidExpression(expression))
    return hasEffect(expression.expression);
  if (ts.isCallExpression(expression)) return expression.expression.kind !== SyntaxKind.SuperKeyword;
  return (
    ts.isBinaryExpression(expression) ||
    ts.isDeleteExpression(expression) ||
    ts.isPostfixUnaryExpression(expression) ||
    ts.isPrefixUnaryExpression(expression)
  );
}

/** Removes conditional parts, such as `...(a && { b })` and `...(a ? [b] : [])`. */
function spreadMutations(node) {
  const { parent } = node;
  const isSpread = ts.isSpreadAssignment(parent) || ts.isSpreadElement(parent);
  if (!isSpread || !ts.isParenthesizedExpression(node)) return [];
  return [{ kind: 'spread', to: ts.isSpreadAssignment(parent) ? '{}' : '[]' }];
}
