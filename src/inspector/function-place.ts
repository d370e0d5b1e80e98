import { existsSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** Where a function is written; `line` counts from 1. */
export interface FunctionPlace {
  readonly file: string;
  readonly line: number;
}

const known = new WeakMap<object, FunctionPlace>();

/** The file and line of a function, as the engine knows them, in its source where there is a map; or nothing. */
export async function placeOf(body: unknown): Promise<FunctionPlace | undefined> {
  if (typeof body !== 'function') return undefined;
  const found = known.get(body) ?? (await askEngine(body));
  if (found !== undefined) known.set(body, found);
  return found;
}

const SLOT = Symbol.for('toolwright.inspector.function');

interface EngineLocation {
  readonly scriptId: string;
  readonly lineNumber: number;
  readonly columnNumber: number;
}

/** The engine says this to a debugger alone; it is one for a moment. */
async function askEngine(body: object): Promise<FunctionPlace | undefined> {
  try {
    const { Session } = await import('node:inspector');
    const session = new Session();
    session.connect();
    const urls = new Map<string, string>();
    session.on('Debugger.scriptParsed', ({ params }) => urls.set(params.scriptId, params.url));
    const post = (method: string, params?: object): unknown => {
      let answer: unknown;
      // Answered at once: the session is of this very thread.
      session.post(method, params, (_error, result) => {
        answer = result;
      });
      return answer;
    };
    try {
      Reflect.set(globalThis, SLOT, body);
      post('Debugger.enable');
      const expression = `globalThis[Symbol.for(${JSON.stringify(SLOT.description)})]`;
      const evaluated = post('Runtime.evaluate', { expression }) as { result: { objectId?: string } };
      const { objectId } = evaluated.result;
      if (objectId === undefined) return undefined;
      const { internalProperties = [] } = post('Runtime.getProperties', { objectId }) as {
        internalProperties?: readonly { name: string; value?: { value?: EngineLocation } }[];
      };
      const location = internalProperties.find(({ name }) => name === '[[FunctionLocation]]')?.value?.value;
      return location && sourcePlace(urls.get(location.scriptId) ?? '', location);
    } finally {
      Reflect.deleteProperty(globalThis, SLOT);
      session.disconnect();
    }
  } catch {
    // A runtime without such a session, or one that is being debugged otherwise.
    return undefined;
  }
}

function sourcePlace(url: string, { lineNumber, columnNumber }: EngineLocation): FunctionPlace | undefined {
  if (!url.startsWith('file:')) return undefined;
  const file = fileURLToPath(url);
  const map = `${file}.map`;
  const built = { file: relative(process.cwd(), file), line: lineNumber + 1 };
  if (!existsSync(map)) return built;
  const entry = new SourceMap(JSON.parse(readFileSync(map, 'utf8'))).findEntry(lineNumber, columnNumber);
  if (!('originalSource' in entry) || !entry.originalSource) return built;
  const source = fileURLToPath(new URL(entry.originalSource, pathToFileURL(resolve(map))));
  return { file: relative(process.cwd(), source), line: entry.originalLine + 1 };
}
