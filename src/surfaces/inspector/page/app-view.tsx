import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { visibleText } from '../../../core/kernel/visible-text.js';
import { type AppData, type AppMessage, hostApp, MAX_HEIGHT } from './app-host.js';
import { Fault, Json } from './parts.js';
import { post } from './remote.js';
import { scopeOf, storedScope } from './scope-fields.js';

interface OpenedApp {
  readonly address: string;
  readonly allow: string;
  readonly prefersBorder?: boolean;
  readonly tool: unknown;
}

const FIRST_HEIGHT = 120;
const MAX_MESSAGES = 100;

/** The view of a tool, as hosts of MCP Apps show it; without `data`, before a call. */
export function AppView({ tool, data }: { tool: string; data: AppData | undefined }) {
  const [app, setApp] = useState<OpenedApp>();
  const [fault, setFault] = useState<string>();
  useEffect(() => {
    post<OpenedApp>(`app-views/${encodeURIComponent(tool)}`).then(setApp, (error: Error) =>
      setFault(error.message),
    );
  }, [tool]);
  return (
    <>
      <Fault message={fault} />
      {app && <AppFrame key={app.address} name={tool} app={app} data={data} />}
    </>
  );
}

interface FrameProps {
  readonly name: string;
  readonly app: OpenedApp;
  readonly data: AppData | undefined;
}

function AppFrame({ name, app, data }: FrameProps) {
  const { address, allow, prefersBorder, tool } = app;
  const frame = useRef<HTMLIFrameElement>(null);
  const [height, setHeight] = useState(FIRST_HEIGHT);
  const [messages, setMessages] = useState<readonly (readonly ['view' | 'host', AppMessage])[]>([]);
  // Before the view can send its first message.
  useLayoutEffect(
    () =>
      frame.current
        ? hostApp(frame.current, {
            ...{ tool, data },
            scope: () => scopeOf(storedScope()),
            onHeight: (wanted) => setHeight(Math.min(Math.max(wanted, 1), MAX_HEIGHT)),
            onMessage: (from, message) =>
              setMessages((before) => [...before, [from, message] as const].slice(-MAX_MESSAGES)),
          })
        : undefined,
    [],
  );
  return (
    <>
      {/* Removed instead of the frame, which stays until its view has finished. */}
      <div>
        <iframe
          ref={frame}
          title={`View of ${visibleText(name)}`}
          src={address}
          sandbox="allow-scripts"
          allow={allow}
          class={prefersBorder === false ? 'app' : 'app bordered'}
          style={{ height: `${height}px` }}
        />
      </div>
      <details class="fold">
        <summary>Messages of the view: {messages.length}</summary>
        <ol class="messages">
          {messages.map(([from, message], index) => (
            <li key={index}>
              <span class="faint small">from the {from}</span>
              <Json label={`Message ${index + 1}`} value={message} />
            </li>
          ))}
        </ol>
      </details>
    </>
  );
}
