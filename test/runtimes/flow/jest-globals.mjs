import { format } from 'node:util';
import { expect } from 'expect';

// A small implementation of `@jest/globals` that runs in every runtime.

const tests = [];
let block = { names: [], before: [], after: [], parent: undefined };

function describe(name, body) {
  const outer = block;
  block = { names: [...outer.names, name], before: [], after: [], parent: outer };
  body();
  block = outer;
}

function test(name, body) {
  tests.push({ name: [...block.names, name].join(' › '), body, block });
}

const each =
  (declare) =>
  (...rows) =>
  (name, body) => {
    for (const row of rows.flat(1)) {
      const args = Array.isArray(row) ? row : [row];
      declare(format(name.replaceAll(/%[pjo]/g, '%s'), ...args), () => body(...args));
    }
  };

describe.each = each(describe);
test.each = each(test);

const beforeEach = (hook) => block.before.push(hook);
const afterEach = (hook) => block.after.push(hook);

/** Runs all declared tests in order; returns `{"passed":3,"failed":[…]}`. */
export async function runTests() {
  let passed = 0;
  const failed = [];
  for (const declared of tests) {
    try {
      await runTest(declared);
      passed += 1;
    } catch (error) {
      failed.push(`${declared.name}: ${error?.stack ?? error}`);
    }
  }
  return JSON.stringify({ passed, failed });
}

async function runTest({ body, block }) {
  for (const hook of hooksOf(block, 'before').reverse()) await hook();
  try {
    await body();
  } finally {
    for (const hook of hooksOf(block, 'after')) await hook();
  }
}

/** The hooks of the innermost `describe` come first. */
function hooksOf(block, kind) {
  return block === undefined ? [] : [...block[kind], ...hooksOf(block.parent, kind)];
}

export { afterEach, beforeEach, describe, expect, test };
