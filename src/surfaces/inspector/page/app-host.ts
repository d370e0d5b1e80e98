import { post } from './remote.js';

/** A message of JSON-RPC. */
export interface AppMessage {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
}

/** The arguments of a call, which the view receives, with its result or why it was cancelled. */
export type AppData = { readonly input: unknown } & (
  | { readonly result: unknown }
  | { readonly cancelled: string }
);

interface HostParts {
  /** The tool as hosts see it. */
  readonly tool: unknown;
  readonly data: AppData | undefined;
  /** The scope of calls that the view makes. */
  readonly scope: () => unknown;
  readonly onHeight: (height: number) => void;
  readonly onMessage: (from: 'view' | 'host', message: AppMessage) => void;
}

const PROTOCOL_VERSION = '2026-01-26';
const METHOD_NOT_FOUND = -32601;
const FAILED = -32000;
const TEARDOWN_ID = 'teardown';
/** How long a view may take to finish. */
const TEARDOWN_MS = 2_000;

/**
 * Answers the view in a frame as a host of MCP Apps does: it starts, receives the arguments and the result of the call,
 * reports its height, and calls tools. Everything else is refused. Returns a function that ends this: the frame is
 * hidden, and removed when the view has finished.
 */
export function hostApp(frame: HTMLIFrameElement, parts: HostParts): () => void {
  const ended = Promise.withResolvers<void>();
  let isInitialized = false;
  const send = (message: AppMessage) => {
    parts.onMessage('host', message);
    // The sandbox gives the view an opaque origin, which no other target matches.
    frame.contentWindow?.postMessage({ jsonrpc: '2.0', ...message }, '*');
  };
  const receive = async ({ source, data }: MessageEvent) => {
    if (source !== frame.contentWindow || Object(data).jsonrpc !== '2.0') return;
    const message = data as AppMessage;
    const { id, method } = message;
    parts.onMessage('view', message);
    if (id === TEARDOWN_ID && method === undefined) ended.resolve();
    if (method === undefined) return;
    if (method === 'ui/notifications/initialized') isInitialized = true;
    if (id === undefined) return notice(message, parts, send);
    const answer = await answerTo(message, frame, parts).catch((error: Error) => ({
      error: { code: FAILED, message: error.message },
    }));
    send({ id, ...answer });
  };
  addEventListener('message', receive);
  return async () => {
    // A host sends nothing before that, and a frame that is moved in another way starts anew.
    if (isInitialized && 'moveBefore' in document.body) {
      frame.style.display = 'none';
      document.body.moveBefore(frame, null);
      send({ id: TEARDOWN_ID, method: 'ui/resource-teardown', params: { reason: 'The view is closed' } });
      setTimeout(ended.resolve, TEARDOWN_MS);
      await ended.promise;
    }
    removeEventListener('message', receive);
    frame.remove();
  };
}

function notice({ method, params }: AppMessage, parts: HostParts, send: (message: AppMessage) => void): void {
  if (method === 'ui/notifications/size-changed' && Number.isFinite(params?.height))
    parts.onHeight(Number(params?.height));
  if (method !== 'ui/notifications/initialized' || parts.data === undefined) return;
  const { data } = parts;
  send({ method: 'ui/notifications/tool-input', params: { arguments: data.input } });
  if ('cancelled' in data)
    send({ method: 'ui/notifications/tool-cancelled', params: { reason: data.cancelled } });
  else send({ method: 'ui/notifications/tool-result', params: Object(data.result) });
}

async function answerTo(
  { method = '', params = {} }: AppMessage,
  frame: HTMLIFrameElement,
  { tool, scope }: HostParts,
): Promise<Pick<AppMessage, 'result' | 'error'>> {
  switch (method) {
    case 'ui/initialize':
      return { result: welcome(frame, tool) };
    case 'ping':
      return { result: {} };
    case 'ui/request-display-mode':
      return { result: { mode: 'inline' } };
    case 'tools/call':
      return { result: await post('app-calls', { ...params, scope: scope() }) };
    default:
      return { error: { code: METHOD_NOT_FOUND, message: `The inspector does not support ${method}` } };
  }
}

/** The most pixels of a view. */
export const MAX_HEIGHT = 800;

function welcome(frame: HTMLIFrameElement, tool: unknown) {
  const isDark = matchMedia('(prefers-color-scheme: dark)').matches;
  return {
    protocolVersion: PROTOCOL_VERSION,
    hostInfo: { name: 'toolwright-inspector', version: '1.0.0' },
    hostCapabilities: { serverTools: {}, logging: {} },
    hostContext: {
      toolInfo: { tool },
      theme: isDark ? 'dark' : 'light',
      displayMode: 'inline',
      availableDisplayModes: ['inline'],
      containerDimensions: { width: frame.clientWidth, maxHeight: MAX_HEIGHT },
      locale: navigator.language,
      timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
      platform: 'web',
    },
  };
}
