import { HttpAgent } from '@ag-ui/client';
import { useEffect, useState } from 'react';
import {
  ApprovalForm,
  CallCard,
  ChatFrame,
  Composer,
  openPage,
  QuestionForm,
  runClientTool,
} from './parts.jsx';

const API = '/api/agent';

/** An `HttpAgent` that can connect: a GET gives it what was said, and the rest of what goes on. */
class ChatAgent extends HttpAgent {
  connect({ threadId, runId }) {
    const query = new URLSearchParams({ id: threadId, runId });
    const headers = this.headers;
    const get = () => fetch(`${API}?${query}`, { headers, signal: this.abortController.signal });
    return new HttpAgent({ url: API, fetch: get }).run({ threadId, runId, messages: [] });
  }
}

function AgentPage({ agent }) {
  const [shown, setShown] = useState({ messages: agent.messages, interrupts: [], status: 'ready' });
  const [error, setError] = useState();
  // AG-UI wants all interrupts to be answered at once.
  const [answers, setAnswers] = useState({});

  const follow = async (work) => {
    setError(undefined);
    const show = (status) =>
      setShown({ messages: [...agent.messages], interrupts: [...agent.pendingInterrupts], status });
    const subscription = agent.subscribe({
      onMessagesChanged: () => show('streaming'),
      onRunErrorEvent: ({ event }) => setError(event.message),
    });
    show('submitted');
    try {
      await work();
      await runClientCalls(agent);
    } catch (thrown) {
      if (thrown.name !== 'AbortError') setError(String(thrown.message));
    } finally {
      subscription.unsubscribe();
      show('ready');
    }
  };
  useEffect(() => void follow(() => agent.connectAgent()), []);

  const prompt = (content) => {
    agent.addMessage({ id: crypto.randomUUID(), role: 'user', content });
    return follow(() => agent.runAgent());
  };
  const answer = (interruptId, payload) => {
    const given = { ...answers, [interruptId]: { interruptId, status: 'resolved', payload } };
    setAnswers(given);
    const resume = shown.interrupts.map(({ id }) => given[id]);
    if (resume.every((entry) => entry !== undefined)) {
      setAnswers({});
      follow(() => agent.runAgent({ resume }));
    }
  };
  const end = () => {
    fetch(`${API}?id=${encodeURIComponent(agent.threadId)}`, { method: 'DELETE', headers: agent.headers });
  };

  const results = new Map(
    shown.messages.flatMap((message) => (message.role === 'tool' ? [[message.toolCallId, message]] : [])),
  );
  const open = shown.interrupts.filter(({ id }) => answers[id] === undefined);
  return (
    <ChatFrame
      title="AG-UI"
      status={shown.status}
      error={error}
      composer={
        <Composer
          onSend={prompt}
          onStop={end}
          isBusy={shown.status !== 'ready'}
          isWaiting={shown.interrupts.length > 0}
        />
      }
    >
      {shown.messages.map((message) => (
        <Message key={message.id} message={message} results={results} open={open} onAnswer={answer} />
      ))}
    </ChatFrame>
  );
}

/** Calls that were left to the browser: their results are what it says next. */
async function runClientCalls(agent) {
  const answered = new Set(agent.messages.map(({ toolCallId }) => toolCallId));
  const open = agent.messages
    .flatMap(({ toolCalls = [] }) => toolCalls)
    .filter(({ id }) => !answered.has(id));
  let isRun = false;
  for (const { id, function: called } of open) {
    const result = await runClientTool(called.name);
    if (result === undefined) continue;
    isRun = true;
    const content = JSON.stringify(result);
    agent.addMessage({ id: crypto.randomUUID(), role: 'tool', toolCallId: id, content });
  }
  // What waits for a person goes first: its answer takes these results along.
  if (!isRun || agent.pendingInterrupts.length > 0) return;
  await agent.runAgent();
  await runClientCalls(agent);
}

function Message({ message, results, open, onAnswer }) {
  const { id, role, content, toolCalls = [] } = message;
  // Results are shown with their calls.
  if (role === 'tool' || role === 'activity') return null;
  return (
    <li data-role={role} data-id={id}>
      {role === 'reasoning' ? <em>{content}</em> : content && <p>{content}</p>}
      {toolCalls.map((call) => (
        <Call
          key={call.id}
          call={call}
          result={results.get(call.id)}
          interrupt={open.find(({ toolCallId }) => toolCallId === call.id)}
          onAnswer={onAnswer}
        />
      ))}
    </li>
  );
}

const STATES = { success: 'done', refused: 'refused' };

function Call({ call, result, interrupt, onAnswer }) {
  const { name, arguments: text } = call.function;
  const args = parsed(text);
  const ended = result && (STATES[result.metadata?.status ?? 'success'] ?? 'failed');
  return (
    <CallCard
      name={name}
      state={ended ?? (interrupt ? 'waiting' : 'running')}
      args={args}
      output={result?.content}
    >
      {interrupt?.reason === 'tool_call' && (
        <ApprovalForm
          name={name}
          args={args}
          onAnswer={(approved, editedArgs) => onAnswer(interrupt.id, { approved, editedArgs })}
        />
      )}
      {interrupt && interrupt.reason !== 'tool_call' && (
        <QuestionForm question={interrupt.message} onAnswer={(value) => onAnswer(interrupt.id, value)} />
      )}
    </CallCard>
  );
}

/** While they are streamed, arguments are no JSON yet. */
function parsed(text) {
  try {
    return JSON.parse(text || '{}');
  } catch {
    return {};
  }
}

openPage(async ({ chatId, headers }) => (
  <AgentPage agent={new ChatAgent({ url: API, threadId: chatId, headers })} />
));
