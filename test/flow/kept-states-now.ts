/**
 * One example of each format that this version stores: states of version 3 (with provider items) and 5 (with a budget
 * question), a snapshot of version 2, and a running run. A changed format gets a new version, and these stay.
 */
export const KEPT_STATE_3 = {
  version: 3,
  runId: 'cfdf05fb-504a-44d8-afa4-d26039320ee7',
  revision: 1,
  tools: ['look', 'drop'],
  model: 'm',
  messages: [{ role: 'user', content: 'Hi' }],
  toolCalls: [],
  iterations: 1,
  usage: { inputTokens: 3, outputTokens: 2, totalTokens: 5, reasoningTokens: 1 },
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
          durationMs: 1.9440209999997933,
          status: 'success',
          result: { forLLM: 'seen', silent: false, isError: false, async: false },
        },
        providerItems: { 'maker/m': { of: 'c0' } },
      },
      {
        status: 'waiting',
        id: 'c1',
        name: 'drop',
        arguments: {},
        waits: [{ kind: 'approval', index: 0 }],
        journal: { arguments: {}, answers: [], once: [] },
        providerItems: { 'maker/m': { of: 'c1' } },
      },
    ],
    reasoning: 'I should look.',
    providerItems: { 'maker/m': { signature: 'abc==' } },
  },
  pending: [
    { id: 'approval_boQc2Axb99xlksSMo1hqBJ', callId: 'c1', tool: 'drop', arguments: {}, kind: 'approval' },
  ],
};

export const KEPT_STATE_5 = {
  version: 5,
  runId: 'ed2fc6b6-cb34-4aa3-93b7-6fd0d2e8774e',
  revision: 1,
  tools: ['look'],
  model: 'm',
  messages: [
    { role: 'user', content: 'Hi' },
    {
      role: 'assistant',
      content: 'Let me see.',
      tool_calls: [{ id: 'c0', type: 'function', function: { name: 'look', arguments: '{}' } }],
    },
    { role: 'tool', content: 'seen', tool_call_id: 'c0' },
  ],
  toolCalls: [
    {
      id: 'c0',
      name: 'look',
      rawArguments: {},
      arguments: {},
      repairs: [],
      removed: [],
      attempts: 1,
      durationMs: 0.9821050000000469,
      status: 'success',
      result: { forLLM: 'seen', silent: false, isError: false, async: false },
    },
  ],
  iterations: 1,
  usage: { inputTokens: 50, outputTokens: 50, totalTokens: 100 },
  spent: { tokens: 100, calls: 1, steps: 1, timeMs: 3, tools: { look: { calls: 1, cost: 0 } } },
  retries: { byTool: [], unknown: 0, total: 0 },
  guard: { seen: ['{}\nlook\nseen\n'], counts: [['{}\nlook\nseen\n', 1]] },
  open: {
    content: '',
    calls: [
      {
        status: 'waiting',
        id: 'budget_1_tokens_250',
        name: 'budget',
        arguments: { of: 'the run', part: 'tokens', limit: 250, left: 150, least: 50, most: 250 },
        waits: [
          {
            kind: 'question',
            index: 0,
            message:
              'The budget of the run is spent: of 250 tokens, 150 are left, and what comes next may take more. How many more may it take, from 50 to 250?',
            schema: { type: 'integer', minimum: 50, maximum: 250 },
          },
        ],
        journal: {
          arguments: { of: 'the run', part: 'tokens', limit: 250, left: 150, least: 50, most: 250 },
          answers: [],
          once: [],
        },
        asks: { account: 'run 0', part: 'tokens' },
      },
    ],
  },
  pending: [
    {
      id: 'question_H7M5k7AkqqyOiMCwq1OgFH',
      callId: 'budget_1_tokens_250',
      tool: 'budget',
      arguments: { of: 'the run', part: 'tokens', limit: 250, left: 150, least: 50, most: 250 },
      kind: 'question',
      message:
        'The budget of the run is spent: of 250 tokens, 150 are left, and what comes next may take more. How many more may it take, from 50 to 250?',
      schema: { type: 'integer', minimum: 50, maximum: 250 },
    },
  ],
};

export const KEPT_SNAPSHOT_2 = {
  version: 2,
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
        version: 3,
        runId: 'f279403c-2432-4845-a6b6-3ab73be9f0c4',
        revision: 1,
        tools: ['look', 'drop'],
        model: 'm',
        messages: [{ role: 'user', content: 'Hi' }],
        toolCalls: [],
        iterations: 1,
        usage: { inputTokens: 3, outputTokens: 2, totalTokens: 5, reasoningTokens: 1 },
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
                durationMs: 0.20941300000004048,
                status: 'success',
                result: { forLLM: 'seen', silent: false, isError: false, async: false },
              },
              providerItems: { 'maker/m': { of: 'c0' } },
            },
            {
              status: 'waiting',
              id: 'c1',
              name: 'drop',
              arguments: {},
              waits: [{ kind: 'approval', index: 0 }],
              journal: { arguments: {}, answers: [], once: [] },
              providerItems: { 'maker/m': { of: 'c1' } },
            },
          ],
          reasoning: 'I should look.',
          providerItems: { 'maker/m': { signature: 'abc==' } },
        },
        pending: [
          {
            id: 'approval_kkJQifJQM0sl2a_TRQu2fx',
            callId: 'c1',
            tool: 'drop',
            arguments: {},
            kind: 'approval',
          },
        ],
      },
      isKept: false,
    },
  },
  inbox: [{ kind: 'prompt', content: 'And then?' }],
  tasks: [],
};

export const KEPT_RUN_3 = {
  state: {
    version: 3,
    status: 'running',
    runId: 'kept',
    revision: 0,
    tools: ['look', 'drop'],
    model: 'm',
    messages: [{ role: 'user', content: 'Hi' }],
    toolCalls: [],
    iterations: 0,
    usage: { inputTokens: 0, outputTokens: 0, totalTokens: 0 },
    retries: { byTool: [], unknown: 0, total: 0 },
    guard: { seen: [], counts: [] },
  },
  entries: [
    {
      type: 'step',
      messages: [],
      iterations: 1,
      usage: { inputTokens: 3, outputTokens: 2, totalTokens: 5, reasoningTokens: 1 },
      open: {
        content: 'Let me see.',
        calls: [
          {
            status: 'begun',
            id: 'c0',
            name: 'look',
            arguments: {},
            providerItems: { 'maker/m': { of: 'c0' } },
          },
          {
            status: 'begun',
            id: 'c1',
            name: 'drop',
            arguments: {},
            providerItems: { 'maker/m': { of: 'c1' } },
          },
        ],
        reasoning: 'I should look.',
        providerItems: { 'maker/m': { signature: 'abc==' } },
      },
    },
    {
      type: 'calls',
      calls: [
        {
          index: 0,
          call: {
            status: 'settled',
            record: {
              id: 'c0',
              name: 'look',
              rawArguments: {},
              arguments: {},
              repairs: [],
              removed: [],
              attempts: 1,
              durationMs: 0.05897800000002462,
              status: 'success',
              result: { forLLM: 'seen', silent: false, isError: false, async: false },
              idempotencyKey: 'zGKz8lwVugjEe1TJDZtpfdr2oegMbax20Wbjx8vmQxA',
            },
            providerItems: { 'maker/m': { of: 'c0' } },
          },
        },
      ],
    },
  ],
};
