import { type CompletionModel, Conversation, type ConversationEvent, complete } from 'toolwright';
import { ScriptedProvider, type ScriptedStep } from 'toolwright/testing';
import { answeredTools, waitingTools } from './answered-tools.js';
import type { RecordedCase } from './case.js';
import { runOf } from './loop-cases.js';
import { Seeded } from './seeded.js';

const TALKS = 60;

const STEPS: readonly ScriptedStep[] = [
  { content: 'Hello.' },
  { content: 'Again?' },
  { content: '' },
  new Error('down'),
  { toolCalls: [{ name: 'add', arguments: { a: 1, b: 2 } }] },
  { toolCalls: [{ name: 'work', arguments: { title: 'lunch' } }] },
  { toolCalls: [{ name: 'direct' }] },
  { content: 'Asking.', toolCalls: [{ name: 'pay', arguments: { amount: 500 } }] },
  {
    toolCalls: [
      { name: 'book', arguments: { city: 'Oslo' } },
      { name: 'echo', arguments: { say: 'x' } },
    ],
  },
  { toolCalls: [{ name: 'locate' }] },
  { toolCalls: [{ name: 'fail' }, { name: 'nobody' }] },
];

/** Conversations of several turns with their snapshots, and single completions. */
export function conversationCases(): RecordedCase[] {
  return [
    ...Array.from({ length: TALKS }, (_, index) => ({
      name: `conversation ${index + 1}`,
      run: () => talk(new Seeded(`talk ${index}`)),
    })),
    ...completionCases(),
  ];
}

async function talk(random: Seeded): Promise<unknown> {
  const script = [
    ...Array.from({ length: 2 + random.below(6) }, () => random.pick(STEPS)),
    ...Array.from({ length: 20 }, () => ({ content: 'Fine.' })),
  ];
  const config = {
    provider: new ScriptedProvider(script),
    model: 'm',
    tools: [...answeredTools(), ...waitingTools()],
    id: 'c1',
    ...(random.chance(0.5) ? { systemPrompt: 'Be brief.' } : {}),
  };
  let conversation = new Conversation(config);
  const events: unknown[] = [];
  const hear = (event: ConversationEvent) => events.push(eventOf(event));
  conversation.subscribe(hear);
  const outcomes: unknown[] = [];
  for (const prompt of ['One', 'Two', 'Three'].slice(random.below(2))) {
    const waiting = conversation.prompt(prompt);
    void waiting.catch(() => {});
    await conversation.idle({ tasks: true });
    for (let round = 0; round < 3 && conversation.pending.length > 0; round += 1) {
      if (random.chance(0.3)) {
        conversation = Conversation.restore(config, JSON.parse(JSON.stringify(await conversation.close())));
        conversation.subscribe(hear);
        await conversation.idle({ tasks: true });
      }
      const answers = conversation.pending.map(({ id, kind, message }) =>
        kind === 'approval'
          ? { id, approved: random.chance(0.7) }
          : kind === 'client'
            ? { id, result: 'here' }
            : { id, value: message === 'Which seat?' ? 'aisle' : random.chance(0.8) },
      );
      outcomes.push(
        await conversation.answer(answers as never).then(
          ({ status }) => status,
          (thrown: unknown) => ({ thrown }),
        ),
      );
      await conversation.idle({ tasks: true });
    }
  }
  return { outcomes, messages: conversation.messages, events, snapshot: conversation.toJSON() };
}

function eventOf(event: ConversationEvent): unknown {
  if (event.type === 'run-end' || event.type === 'call-end') return event.type;
  if (event.type === 'turn-end')
    return {
      ...event,
      ...(event.result ? { result: { status: event.result.status, content: event.result.content } } : {}),
    };
  return event;
}

function completionCases(): RecordedCase[] {
  const messages = [{ role: 'user', content: 'Go' }] as const;
  const tools = answeredTools().map(({ name, description, parameters }) => ({
    name,
    description,
    parameters,
  }));
  const asked = STEPS.map((step, index) => ({
    name: `completion ${index + 1}`,
    run: async () => {
      const provider = new ScriptedProvider([step]);
      const completion = await complete(
        { provider, model: 'm' },
        { messages, tools, systemPrompt: 'Be brief.' },
      ).catch((thrown: unknown) => ({ thrown }));
      return {
        completion,
        requests: provider.requests.map((request) => ({ ...request, tools: request.tools?.length })),
      };
    },
  }));
  const wrong: readonly object[] = [
    { messages: 'Go' },
    {},
    { messages, systemPromt: 'x' },
    { messages, tools: {} },
    { messages: [{ role: 'robot' }] },
    { messages: [{ role: 'tool', content: 'x', tool_call_id: 'nobody' }] },
  ];
  return [
    ...asked,
    ...wrong.map((request, index) => ({
      name: `wrong completion ${index + 1}`,
      run: () =>
        complete(
          { provider: new ScriptedProvider([]), model: 'm' } as CompletionModel,
          request as never,
        ).then(runOf as never),
    })),
  ];
}
