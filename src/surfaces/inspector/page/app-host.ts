import { post } from './remote.js';

/** A message of JSON-RPC. */
export interface AppMessage {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
}

/** The arguments and the result of a call, which the view receives. */
export interface AppData {
  readonly input: unknown;
  readonly result: unknown;
}

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

/**
 * Answers the view in a frame as a host of MCP Apps does: it starts, receives the arguments and the result of the call,
 * reports its height, and calls tools. Everything else is refused. Returns a function that ends this.
 */
export function hostApp(frame: HTMLIFrameElement, parts: HostParts): () => void {
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
    if (method === undefined) return;
    if (id === undefined) return notice(message, parts, send);
    const answer = await answerTo(message, frame, parts).catch((error: Error) => ({
      error: { code: FAILED, message: error.message },
    }));
    send({ id, ...answer });
  };
  addEventListener('message', receive);
  return () => removeEventListener('message', receive);
}

function notice({ method, params }: AppMessage, parts: HostParts, send: (message: AppMessage) => void): void {
  if (method === 'ui/notifications/size-changed' && Number.isFinite(params?.height))
    parts.onHeight(Number(params?.height));
  if (method !== 'ui/notifications/initialized' || parts.data === undefined) return;
  const { input, result } = parts.data;
  send({ method: 'ui/notifications/tool-input', params: { arguments: input } });
  send({ method: 'ui/notifications/tool-result', params: Object(result) });
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
