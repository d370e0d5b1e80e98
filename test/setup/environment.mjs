// A Jest environment in which each worker compiles a module once. Jest evaluates modules again for each test file and
// compiles them each time, which takes a quarter of the time of most files.
import { setFlagsFromString } from 'node:v8';
import vm from 'node:vm';
import { TestEnvironment } from 'jest-environment-node';

// V8's own cache refers to the contexts of finished test files, so that they are never collected.
setFlagsFromString('--no-compilation-cache');

const { Script, SourceTextModule, compileFunction } = vm;
const scripts = new Map();
const modules = new Map();

// CommonJS. Dynamic imports must go through Jest, so that each test file gets its own modules.
vm.compileFunction = (source, parameters = [], options = {}) => {
  const { filename, parsingContext } = options;
  if (parsingContext === undefined) return compileFunction(source, parameters, options);
  if (/\bimport\b/.test(source)) return compileImporting(source, parameters, options);
  const head = `(function (${parameters.join(', ')}) {`;
  let cached = scripts.get(filename);
  if (cached?.source !== source) {
    const script = new Script(`${head}${source}\n})`, { filename, columnOffset: -head.length });
    cached = { source, script };
    scripts.set(filename, cached);
  }
  return cached.script.runInContext(parsingContext);
};

const functions = new Map();

function compileImporting(source, parameters, options) {
  const { filename } = options;
  const cached = functions.get(filename);
  if (cached?.source === source)
    return compileFunction(source, parameters, { ...options, cachedData: cached.data });
  const compiled = compileFunction(source, parameters, { ...options, produceCachedData: true });
  functions.set(filename, { source, data: compiled.cachedData });
  return compiled;
}

vm.SourceTextModule = new Proxy(SourceTextModule, {
  construct(Module, [source, options]) {
    const cached = modules.get(options.identifier);
    if (cached?.source === source) {
      try {
        return new Module(source, { ...options, cachedData: cached.data });
      } catch {
        // A test has changed the flags of V8, which rejects code that was compiled with other flags.
      }
    }
    const module = new Module(source, options);
    modules.set(options.identifier, { source, data: module.createCachedData() });
    return module;
  },
});

const CHILD_MESSAGE_END = 2;

// jest-worker ends each worker with this message. Without an exit, a worker would wait up to half a minute for leftovers
// of tests, such as timers and connections to killed processes.
process.on('message', (message) => {
  if (Array.isArray(message) && message[0] === CHILD_MESSAGE_END) setImmediate(() => process.exit());
});

/** Default log lines, which are hidden: many tests cause failures on purpose. */
const DEFAULT_LOG = /^(?:toolwright: |oidc-provider )/;

// Jest requires a default export.
export default class QuietEnvironment extends TestEnvironment {
  async setup() {
    await super.setup();
    const { console } = this.global;
    for (const level of ['error', 'warn']) {
      const write = console[level].bind(console);
      console[level] = (...values) => {
        if (!DEFAULT_LOG.test(String(values[0]))) write(...values);
      };
    }
  }
}
