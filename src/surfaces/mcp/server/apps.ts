import type { McpApp, McpAppCsp, McpAppPermissions } from '../../../core/contract/declaration.js';
import type { ToolDefinition } from '../../../core/contract/tool.js';
import type { AuthorFault, UnplacedFault } from '../../../core/errors/author-fault.js';
import {
  BOOLEAN,
  either,
  FILLED_TEXT,
  FUNCTION,
  listOf,
  type OptionRule,
  objectOf,
  optionFaults,
  optionTable,
  RECORD,
  required,
  TEXT,
} from '../../../core/kernel/options.js';
import type { ToolRegistry } from '../../../run/call/tool-registry.js';
import { toolPlace } from '../../../tools/discovery/bound-method.js';

export const APP_MIME_TYPE = 'text/html;profile=mcp-app';

const APP_URI: OptionRule = {
  accepts: (value) => typeof value === 'string' && /^ui:\/\/[^\s?#]+$/.test(value),
  fix: "'ui://shop/order-card'",
};

/** Hosts join origins to a policy, so that a space or a semicolon would add to it. */
const ORIGIN: OptionRule = {
  accepts: (value) =>
    typeof value === 'string' &&
    /^[a-z][a-z\d+.-]*:\/\/(?:\*\.)?[\w.-]+(?::\d+)?$|^[a-z]+:\/\/\[[\da-f:]+\](?::\d+)?$/i.test(value),
  fix: "an origin without path: 'https://api.example.org', or 'https://*.example.org'",
};
const ORIGINS = listOf(ORIGIN, "['https://api.example.org']");

const APP = optionTable<McpApp>(
  'ui',
  {
    uri: required(APP_URI),
    html: required({
      ...either(FILLED_TEXT, FUNCTION),
      fix: "'<!doctype html>…', or () => readFile(…, 'utf8')",
    }),
    title: TEXT,
    description: TEXT,
    csp: objectOf<McpAppCsp>(
      { connectDomains: ORIGINS, resourceDomains: ORIGINS, frameDomains: ORIGINS, baseUriDomains: ORIGINS },
      { fix: "{ connectDomains: ['https://api.example.org'] }" },
    ),
    permissions: objectOf<McpAppPermissions>(
      { camera: RECORD, microphone: RECORD, geolocation: RECORD, clipboardWrite: RECORD },
      { fix: '{ camera: {} }' },
    ),
    domain: FILLED_TEXT,
    prefersBorder: BOOLEAN,
  },
  {
    resourceUri: 'uri: …',
    visibility: "_meta: { ui: { visibility: ['app'] } } of the tool",
  },
);

/** The mistakes in a tool's `ui`, without the place. */
export function appFaults({ ui, output }: ToolDefinition): readonly UnplacedFault[] {
  if (ui === undefined) return [];
  const faults = optionFaults(ui, APP).map(({ problem, fix }) => ({
    problem: `its \`ui\` is wrong: ${problem}`,
    fix,
  }));
  return output?.type === 'object' ? faults : [...faults, NO_OBJECT];
}

const NO_OBJECT = {
  problem: 'it has a `ui`, but its output does not describe an object, which the view needs for its data',
  causes: [
    'the return type is not an object, such as a list, a text, or a union with undefined',
    'the generated file is missing, or older than the method',
  ],
  fix: 'a method that returns an object, and npx toolwright generate; or `output: …` with a schema of an object',
};

/** All mistakes in the views of tools, and two different views or resources of one URI. */
export function allAppFaults(registry: ToolRegistry): readonly AuthorFault[] {
  const resources = registry.part('resource').tools();
  const resourceUris = new Set(
    resources.flatMap(({ served }) => (served?.kind === 'resource' ? [served.uri] : [])),
  );
  const known = new Map<string, { readonly app: McpApp; readonly where: string }>();
  return registry.tools().flatMap((tool) => {
    const { ui: app } = tool;
    if (app === undefined) return [];
    const where = toolPlace(tool);
    const faults = appFaults(tool).map((fault) => ({ where, ...fault }));
    const first = known.get(app.uri) ?? { app, where };
    known.set(app.uri, first);
    const isSame =
      first.app === app || (first.app.html === app.html && JSON.stringify(first.app) === JSON.stringify(app));
    if (!isSame)
      faults.push({
        where,
        ...TWO_VIEWS,
        problem: `its view ${app.uri} differs from that of ${first.where}`,
      });
    if (resourceUris.has(app.uri))
      faults.push({ where, ...TWO_VIEWS, problem: `its view ${app.uri} has the URI of a @Resource` });
    return faults;
  });
}

const TWO_VIEWS = {
  fix: 'the same object for all tools that share a view, or a different `uri` for each view',
};

/** The document of a view. */
export async function htmlOf({ uri, html }: McpApp): Promise<string> {
  const text: unknown = typeof html === 'function' ? await html() : html;
  if (typeof text === 'string' && text !== '') return text;
  throw new TypeError(
    `The view ${uri} has no HTML: its \`html\` returned ${text === '' ? 'an empty text' : typeof text}`,
  );
}
