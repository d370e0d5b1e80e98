import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { runs } from '../setup/runs.js';
import { arbitraryConversation, ConversationWorld } from './random-conversation.js';

const MINUTE = 60_000;

test(
  'Conversation does everything exactly once under random prompts, answers, aborts and crashes',
  async () => {
    await fc.assert(
      fc.asyncProperty(arbitraryConversation, async (random) => {
        const world = new ConversationWorld(random);
        for (const action of random.actions) await world.act(action);
        await world.drain();
        expect(world.faults).toEqual([]);
        const expected = world.prompts.filter((text) => !world.withdrawn.has(text));
        const said = world.conversation.messages.flatMap(({ role, content }) =>
          role === 'user' && String(content).startsWith('prompt') ? [String(content)] : [],
        );
        expect(said).toEqual(expected);
        expect(world.begun).toEqual(expected);
        expect(new Set(world.ended).size).toBe(world.ended.length);
        expect(new Set(world.completed).size).toBe(world.completed.length);
        for (const taskId of world.acknowledged) expect(world.completed).toContain(taskId);
        for (const [number, times] of world.settled)
          expect([number, world.runs.get(number) ?? 0]).toEqual([number, times]);
        for (const number of world.denied) expect(world.runs.get(number) ?? 0).toBe(0);
      }),
      { numRuns: runs(150) },
    );
  },
  MINUTE,
);
