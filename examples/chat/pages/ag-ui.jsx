import { HttpAgent } from '@ag-ui/client';
import { useEffect, useState } from 'react';
import { ApprovalForm, openPage, PromptForm, QuestionForm, runClientTool } from './parts.jsx';

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

  const calls = new Map(
    shown.messages.flatMap(({ toolCalls = [] }) => toolCalls.map((call) => [call.id, call.function])),
  );
  return (
    <main>
      <h1>Agent</h1>
      <ol>
        {shown.messages.map((message) => (
          <Message key={message.id} message={message} calls={calls} />
        ))}
      </ol>
      {shown.interrupts
        .filter(({ id }) => answers[id] === undefined)
        .map(({ id, reason, message, toolCallId }) =>
          reason === 'tool_call' ? (
            <ApprovalForm
              key={id}
              name={calls.get(toolCallId)?.name}
              args={JSON.parse(calls.get(toolCallId)?.arguments || '{}')}
              onAnswer={(approved, editedArgs) => answer(id, { approved, editedArgs })}
            />
          ) : (
            <QuestionForm key={id} question={message} onAnswer={(value) => answer(id, value)} />
          ),
        )}
      <p role="status">{shown.status}</p>
      {error && <p role="alert">{error}</p>}
      <PromptForm onPrompt={prompt} isBusy={shown.status !== 'ready'} />
      <button type="button" onClick={end}>
        Stop
      </button>
    </main>
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

function Message({ message, calls }) {
  const { id, role, content, toolCallId, metadata } = message;
  if (role === 'tool')
    return (
      <li data-role={role}>
        <section aria-label={calls.get(toolCallId)?.name} data-state={metadata?.status}>
          <output>{content}</output>
        </section>
      </li>
    );
  if (role === 'activity') return null;
  return (
    <li data-role={role} data-id={id}>
      {role === 'reasoning' ? <em>{content}</em> : <p>{content}</p>}
      {message.toolCalls?.map((call) => (
        <code key={call.id}>
          {call.function.name} {call.function.arguments}
        </code>
      ))}
    </li>
  );
}

openPage(async ({ chatId, headers }) => (
  <AgentPage agent={new ChatAgent({ url: API, threadId: chatId, headers })} />
));
