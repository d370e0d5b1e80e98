/**
 * Formats of earlier versions that are still read: states of version 2 and of version 1 (without owner, tools and
 * model), and a snapshot of version 1.
 */
export const KEPT_STATE = {
  version: 2,
  runId: '824453e2-14d2-4ea3-a377-70e4dc8f03bc',
  revision: 1,
  tools: ['look', 'drop'],
  model: 'm',
  messages: [{ role: 'user', content: 'Hi' }],
  toolCalls: [],
  iterations: 1,
  usage: { inputTokens: 3, outputTokens: 2, totalTokens: 5 },
  retries: { byTool: [], unknown: 0, total: 0 },
  guard: { seen: [], counts: [] },
  open: {
    content: 'Let me see.',
    calls: [
      {
        status: 'settled',
        record: {
          id: 'c0',
          name: 'look',
          rawArguments: {},
          arguments: {},
          repairs: [],
          removed: [],
          attempts: 1,
          durationMs: 3.8955529999999925,
          status: 'success',
          result: { forLLM: 'seen', silent: false, isError: false, async: false },
        },
      },
      {
        status: 'waiting',
        id: 'c1',
        name: 'drop',
        arguments: {},
        waits: [{ kind: 'approval', index: 0 }],
        journal: { arguments: {}, answers: [], once: [] },
      },
    ],
  },
  pending: [
    { id: 'approval_zav9WZP_j7e9Ag05YrwXK-', callId: 'c1', kind: 'approval', tool: 'drop', arguments: {} },
  ],
};

const { tools: _, model: __, ...first } = KEPT_STATE;
export const KEPT_STATE_1 = { ...first, version: 1 };

export const KEPT_SNAPSHOT = {
  version: 1,
  id: 'kept',
  messages: [{ role: 'user', content: 'Hi' }],
  turns: 1,
  turn: {
    number: 1,
    origin: { kind: 'prompt', content: 'Hi' },
    isAborted: false,
    standing: {
      status: 'suspended',
      state: {
        version: 2,
        runId: '70c61f60-32e9-4356-9faf-263ea3256b63',
        revision: 1,
        tools: ['look', 'drop'],
        model: 'm',
        messages: [{ role: 'user', content: 'Hi' }],
        toolCalls: [],
        iterations: 1,
        usage: { inputTokens: 3, outputTokens: 2, totalTokens: 5 },
        retries: { byTool: [], unknown: 0, total: 0 },
        guard: { seen: [], counts: [] },
        open: {
          content: 'Let me see.',
          calls: [
            {
              status: 'settled',
              record: {
                id: 'c0',
                name: 'look',
                rawArguments: {},
                arguments: {},
                repairs: [],
                removed: [],
                attempts: 1,
                durationMs: 2.8756489999999815,
                status: 'success',
                result: { forLLM: 'seen', silent: false, isError: false, async: false },
              },
            },
            {
              status: 'waiting',
              id: 'c1',
              name: 'drop',
              arguments: {},
              waits: [{ kind: 'approval', index: 0 }],
              journal: { arguments: {}, answers: [], once: [] },
            },
          ],
        },
        pending: [
          {
            id: 'approval_2r4HGEbh2JuIrzh4XJAFuT',
            callId: 'c1',
            kind: 'approval',
            tool: 'drop',
            arguments: {},
          },
        ],
      },
      isKept: false,
    },
  },
  inbox: [],
  tasks: [],
};

/** The state of a nested agent in the state of the calling run. */
export const KEPT_STATE_4 = {
  version: 4,
  runId: '7e35ca3d-7d91-40c3-98d1-2ff5dc6de42a',
  revision: 1,
  tools: ['agent'],
  model: 'm',
  messages: [
    {
      role: 'user',
      content: 'Hi',
    },
  ],
  toolCalls: [],
  iterations: 1,
  usage: {
    inputTokens: 3,
    outputTokens: 2,
    totalTokens: 5,
  },
  retries: {
    byTool: [],
    unknown: 0,
    total: 0,
  },
  guard: {
    seen: [],
    counts: [],
  },
  open: {
    content: 'Let me see.',
    calls: [
      {
        status: 'waiting',
        id: 'c0',
        name: 'agent',
        arguments: {
          task: 'Drop it',
        },
        waits: [
          {
            kind: 'approval',
            index: 0,
            inner: {
              run: 0,
              id: 'approval_W1OGLSkaA3ajBPpCQO1FKu',
              callId: 'i0',
              tool: 'drop',
              arguments: {},
            },
          },
        ],
        journal: {
          arguments: {
            task: 'Drop it',
          },
          answers: [],
          once: [],
        },
        inner: [
          {
            run: 0,
            state: {
              version: 3,
              runId: 'b0c7c79d-08e5-487a-9191-f1301afae8fd',
              revision: 1,
              tools: ['drop'],
              model: 'm',
              messages: [
                {
                  role: 'user',
                  content: 'Drop it',
                },
              ],
              toolCalls: [],
              iterations: 1,
              usage: {
                inputTokens: 0,
                outputTokens: 0,
                totalTokens: 0,
              },
              retries: {
                byTool: [],
                unknown: 0,
                total: 0,
              },
              guard: {
                seen: [],
                counts: [],
              },
              open: {
                content: '',
                calls: [
                  {
                    status: 'waiting',
                    id: 'i0',
                    name: 'drop',
                    arguments: {},
                    waits: [
                      {
                        kind: 'approval',
                        index: 0,
                      },
                    ],
                    journal: {
                      arguments: {},
                      answers: [],
                      once: [],
                    },
                  },
                ],
              },
              pending: [
                {
                  id: 'approval_W1OGLSkaA3ajBPpCQO1FKu',
                  callId: 'i0',
                  tool: 'drop',
                  arguments: {},
                  kind: 'approval',
                },
              ],
            },
          },
        ],
      },
    ],
  },
  pending: [
    {
      id: 'approval_mKBmLgUJFu6pqc34CaT3sA',
      callId: 'i0',
      tool: 'drop',
      arguments: {},
      kind: 'approval',
      path: [
        {
          callId: 'c0',
          tool: 'agent',
        },
      ],
    },
  ],
};
