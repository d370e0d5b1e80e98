// A Jest environment of Node in which each worker compiles a module once. Jest gives every test file modules of its
// own and compiles their sources anew each time, which is a quarter of what most files cost.
import { setFlagsFromString } from 'node:v8';
import vm from 'node:vm';
import { TestEnvironment } from 'jest-environment-node';

// V8 remembers what it has compiled by the text, and through that keeps all that ever was in a test file's context.
setFlagsFromString('--no-compilation-cache');

const { Script, SourceTextModule, compileFunction } = vm;
const scripts = new Map();
const modules = new Map();

// CommonJS. What may import dynamically has to get the modules of its own test file, which are Jest's to give.
vm.compileFunction = (source, parameters = [], options = {}) => {
  const { filename, parsingContext } = options;
  if (parsingContext === undefined) return compileFunction(source, parameters, options);
  if (/\bimport\b/.test(source)) return compileImporting(source, parameters, options);
  const head = `(function (${parameters.join(', ')}) {`;
  let known = scripts.get(filename);
  if (known?.source !== source) {
    const script = new Script(`${head}${source}\n})`, { filename, columnOffset: -head.length });
    known = { source, script };
    scripts.set(filename, known);
  }
  return known.script.runInContext(parsingContext);
};

const functions = new Map();

function compileImporting(source, parameters, options) {
  const { filename } = options;
  const known = functions.get(filename);
  if (known?.source === source)
    return compileFunction(source, parameters, { ...options, cachedData: known.data });
  const compiled = compileFunction(source, parameters, { ...options, produceCachedData: true });
  functions.set(filename, { source, data: compiled.cachedData });
  return compiled;
}

vm.SourceTextModule = new Proxy(SourceTextModule, {
  construct(Module, [source, options]) {
    const known = modules.get(options.identifier);
    if (known?.source === source) {
      try {
        return new Module(source, { ...options, cachedData: known.data });
      } catch {
        // A test has changed the flags of V8, which takes only what was compiled under the same.
      }
    }
    const module = new Module(source, options);
    modules.set(options.identifier, { source, data: module.createCachedData() });
    return module;
  },
});

const END = 2;

// What jest-worker tells a worker at the end; by itself, it would wait up to half a minute for what tests leave behind:
// deadlines of calls whose process ended in a test, connections to what was killed.
process.on('message', (message) => {
  if (Array.isArray(message) && message[0] === END) setImmediate(() => process.exit());
});

/** What is logged by default: many tests let something fail, and look at what comes of it. */
const LOGGED = /^(?:toolwright: |oidc-provider )/;

// Jest demands a default export.
export default class QuietEnvironment extends TestEnvironment {
  async setup() {
    await super.setup();
    const { console } = this.global;
    for (const level of ['error', 'warn']) {
      const write = console[level].bind(console);
      console[level] = (...values) => {
        if (!LOGGED.test(String(values[0]))) write(...values);
      };
    }
  }
}
