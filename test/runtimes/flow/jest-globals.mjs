import { format } from 'node:util';
import { expect } from 'expect';

// What the tests take from `@jest/globals`, in a few lines that run wherever the tests are to run.

const tests = [];
let place = { names: [], before: [], after: [], parent: undefined };

function describe(name, body) {
  const outer = place;
  place = { names: [...outer.names, name], before: [], after: [], parent: outer };
  body();
  place = outer;
}

function test(name, body) {
  tests.push({ name: [...place.names, name].join(' › '), body, place });
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

const beforeEach = (hook) => place.before.push(hook);
const afterEach = (hook) => place.after.push(hook);

/** Runs all that was declared, one after the other: `{"passed":3,"failed":[…]}`. */
export async function runTests() {
  let passed = 0;
  const failed = [];
  for (const one of tests) {
    try {
      await runTest(one);
      passed += 1;
    } catch (error) {
      failed.push(`${one.name}: ${error?.stack ?? error}`);
    }
  }
  return JSON.stringify({ passed, failed });
}

async function runTest({ body, place }) {
  for (const hook of hooksOf(place, 'before').reverse()) await hook();
  try {
    await body();
  } finally {
    for (const hook of hooksOf(place, 'after')) await hook();
  }
}

/** Those of the innermost `describe` first. */
function hooksOf(place, kind) {
  return place === undefined ? [] : [...place[kind], ...hooksOf(place.parent, kind)];
}

export { afterEach, beforeEach, describe, expect, test };
