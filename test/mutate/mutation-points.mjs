// Where a source file can be changed so that a good test notices. The changes are all written into one text,
// each behind a question whether it is the active one: so a file is transformed once, whatever is tried.
import ts from 'typescript-5.9';

const { SyntaxKind } = ts;

const SWAPPED = new Map([
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
 * The text with every change in it, and the changes: `{ id, kind, line, source, from, to }`. Ids go on from
 * `firstId`; `globalThis.__mutant(id)` says which change is active.
 */
export function addMutants(path, text, firstId) {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.ES2022, true);
  const lines = text.split('\n');
  const mutants = [];
  return { text: render(file), mutants };

  function render(node) {
    const own = ts.isExpression(node) ? mutationsOf(node) : [];
    const ids = own.map((mutation) => keep(node, mutation));
    const inner = renderInside(node);
    return own.reduceRight(
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

  function keep(node, { kind, to }) {
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
    ...ofCondition(node, raw),
    ...ofBinary(node),
    ...ofLiteral(node, raw),
    ...ofPlace(node, raw),
    ...ofSpread(node),
  ];
}

function ofCondition(node, raw) {
  const { parent } = node;
  const isCondition = parent.condition === node || (ts.isIfStatement(parent) && parent.expression === node);
  const isLoop = (ts.isWhileStatement(parent) || ts.isDoStatement(parent)) && parent.expression === node;
  if (!isCondition && !isLoop) return [];
  const negated = { kind: 'condition', to: `!(${raw})` };
  if (!ts.isIfStatement(parent) || parent.elseStatement !== undefined) return [negated];
  return leaves(parent.thenStatement) ? [negated, { kind: 'early exit', to: 'false' }] : [negated];
}

/** Whether a statement ends in `return`, `throw`, `break` or `continue`. */
function leaves(statement) {
  const last = ts.isBlock(statement) ? statement.statements.at(-1) : statement;
  return (
    last !== undefined &&
    (ts.isReturnStatement(last) ||
      ts.isThrowStatement(last) ||
      ts.isBreakStatement(last) ||
      ts.isContinueStatement(last))
  );
}

function ofBinary(node) {
  if (!ts.isBinaryExpression(node)) return [];
  const [left, right] = [node.left.getText(), node.right.getText()];
  const operator = node.operatorToken.kind;
  if (operator === SyntaxKind.QuestionQuestionToken) {
    // What is missing is as good as false.
    const halves = right === 'false' ? [right] : [left, right];
    return halves.map((to) => ({ kind: 'fallback', to }));
  }
  const swapped = SWAPPED.get(operator);
  if (swapped === undefined) return [];
  // As a whole condition, a comparison is negated there.
  if (swapped[0] === 'comparison' && ofCondition(node, '').length > 0) return [];
  return [{ kind: swapped[0], to: `(${left}) ${swapped[1]} (${right})` }];
}

function ofLiteral(node, raw) {
  const to = LITERALS.get(raw);
  const isName =
    node.parent.name === node || node.parent.propertyName === node || ts.isLiteralTypeNode(node.parent);
  return to === undefined || isName ? [] : [{ kind: 'literal', to }];
}

/** What a statement does, and what a function gives. */
function ofPlace(node, raw) {
  const { parent } = node;
  if (ts.isExpressionStatement(parent))
    return hasEffect(node) ? [{ kind: 'statement', to: 'undefined' }] : [];
  const isGiven = ts.isReturnStatement(parent) || (ts.isArrowFunction(parent) && parent.body === node);
  if (!isGiven || raw === 'undefined' || LITERALS.has(raw)) return [];
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

/** `...(a && { b })` and `...(a ? [b] : [])`: what is there only sometimes. */
function ofSpread(node) {
  const { parent } = node;
  const isSpread = ts.isSpreadAssignment(parent) || ts.isSpreadElement(parent);
  if (!isSpread || !ts.isParenthesizedExpression(node)) return [];
  return [{ kind: 'spread', to: ts.isSpreadAssignment(parent) ? '{}' : '[]' }];
}
