import { expect, test } from '@jest/globals';
import type {
  CompletionOptions,
  ConversationCommit,
  ConversationHold,
  ConversationLease,
  ConversationLog,
  ConversationNews,
  EventQuery,
  HoldOutcome,
  Job,
  JobBeginning,
  JobStore,
  NewInboxEntry,
  UnsentQuery,
} from 'toolwright';
import { type ConversationTurn, MemoryConversationStore } from 'toolwright/satellite';
import { MemoryRunStore } from 'toolwright/stores';
import {
  type ConformanceCase,
  conversationLogConformance,
  conversationStoreConformance,
  jobStoreConformance,
} from 'toolwright/testing';

/** The titles of the cases that fail, without the name of the store. */
async function failing(cases: readonly ConformanceCase[]): Promise<readonly string[]> {
  const outcomes = await Promise.allSettled(cases.map(({ run }) => run()));
  return cases
    .filter((_case, index) => outcomes[index]?.status === 'rejected')
    .map(({ title }) => title.replace('S.', ''));
}

function opened() {
  let time = 1_700_000_000_000;
  const advance = (ms: number) => {
    time += ms;
  };
  return { store: new MemoryRunStore({ now: () => time }), advance };
}

/** Delegates to a correct log; subclasses override one method with an error. */
class Log implements ConversationLog {
  constructor(protected readonly right: ConversationLog) {}
  enter(entry: NewInboxEntry) {
    return this.right.enter(entry);
  }
  hold(lease: ConversationLease) {
    return this.right.hold(lease);
  }
  renew(lease: ConversationLease) {
    return this.right.renew(lease);
  }
  commit(hold: ConversationHold, commit: ConversationCommit) {
    return this.right.commit(hold, commit);
  }
  tell(hold: ConversationHold, events: Parameters<ConversationLog['tell']>[1]) {
    return this.right.tell(hold, events);
  }
  letGo(hold: ConversationHold, seen: number) {
    return this.right.letGo(hold, seen);
  }
  read(id: string) {
    return this.right.read(id);
  }
  events(query: EventQuery) {
    return this.right.events(query);
  }
  askAbort(id: string) {
    return this.right.askAbort(id);
  }
  due(limit: number) {
    return this.right.due(limit);
  }
  watch(listener: (news: ConversationNews) => void) {
    return this.right.watch(listener);
  }
  removeEventsOlderThan(ageMs: number) {
    return this.right.removeEventsOlderThan(ageMs);
  }
}

class HoldsForTwo extends Log {
  override async hold(lease: ConversationLease): Promise<HoldOutcome> {
    const conversation = await this.read(lease.conversationId);
    const outcome = await this.right.hold(lease);
    return outcome.status === 'taken' && conversation ? { status: 'held', conversation } : outcome;
  }
}

class EntersForAnybody extends Log {
  override enter({ onlyOwner: _, ...entry }: NewInboxEntry) {
    return this.right.enter(entry);
  }
}

class LosesLateEntries extends Log {
  override async letGo(hold: ConversationHold) {
    const revision = (await this.read(hold.conversationId))?.revision ?? 0;
    return this.right.letGo(hold, revision);
  }
}

class CountsEventsAnew extends Log {
  override async events(query: EventQuery) {
    const events = await this.right.events({ ...query, after: 0, limit: 1000 });
    return events.map(({ event }, index) => ({ number: index + 1, event })).slice(query.after, query.limit);
  }
}

class CutsNothing extends Log {
  override async commit(hold: ConversationHold, commit: ConversationCommit) {
    const { messages = [] } = (await this.read(hold.conversationId)) ?? {};
    const { history } = commit;
    return this.right.commit(
      hold,
      history === undefined ? commit : { ...commit, history: { ...history, keep: messages.length } },
    );
  }
}

test.each<[typeof Log, readonly string[]]>([
  [Log, []],
  [
    HoldsForTwo,
    [
      'hold lets one holder at a time have a conversation, until its lease ends',
      'hold succeeds for one of many simultaneous callers',
    ],
  ],
  [EntersForAnybody, ['enter with `onlyOwner` refuses entries of another owner, and stores the first owner']],
  [LosesLateEntries, ['due lists conversations with new entries, the longest waiting first']],
  [
    CountsEventsAnew,
    [
      'tell numbers events without gaps, and events returns them in pages',
      'removeEventsOlderThan removes events by age, and their numbers are not used again',
    ],
  ],
  [
    CutsNothing,
    ['commit changes turn, history, inbox and events together, and leaves other parts unchanged'],
  ],
])('conversationLogConformance reports for %p the error: %j', async (Broken, wanted) => {
  const open = () => {
    const { store, advance } = opened();
    return { log: new Broken(store.conversations), advance };
  };
  const told = await failing(conversationLogConformance({ name: 'S', open }));
  expect(told.map((title, index) => title.slice(0, wanted[index]?.length))).toEqual(wanted);
});

type Completion = Parameters<JobStore['completeJob']>[1];

class Jobs implements JobStore {
  constructor(protected readonly right: JobStore) {}
  addJob(...given: Parameters<JobStore['addJob']>) {
    return this.right.addJob(...given);
  }
  unsentJobs(query: UnsentQuery) {
    return this.right.unsentJobs(query);
  }
  jobSent(id: string) {
    return this.right.jobSent(id);
  }
  beginJob(id: string, attempt: number) {
    return this.right.beginJob(id, attempt);
  }
  completeJob(id: string, result: Completion, also?: CompletionOptions) {
    return this.right.completeJob(id, result, also);
  }
  job(id: string) {
    return this.right.job(id);
  }
  listJobs(...given: Parameters<JobStore['listJobs']>) {
    return this.right.listJobs(...given);
  }
  removeJobsOlderThan(ageMs: number) {
    return this.right.removeJobsOlderThan(ageMs);
  }
}

class BeginsWhatIsDone extends Jobs {
  override async beginJob(id: string, attempt: number): Promise<JobBeginning> {
    const beginning = await this.right.beginJob(id, attempt);
    return beginning.status === 'settled' ? { status: 'run' } : beginning;
  }
}

class EntersEachResult extends Jobs {
  readonly #conversations: ConversationLog;
  constructor(right: JobStore, conversations: ConversationLog) {
    super(right);
    this.#conversations = conversations;
  }
  override async completeJob(id: string, result: Completion, { entry }: CompletionOptions = {}) {
    if (entry !== undefined) await this.#conversations.enter(entry);
    return this.right.completeJob(id, result);
  }
}

class ForgetsTheSilent extends Jobs {
  override unsentJobs(query: UnsentQuery) {
    return this.right.unsentJobs({ ...query, silentForMs: Number.MAX_SAFE_INTEGER });
  }
}

class AddsTwice extends Jobs {
  override async addJob(...given: Parameters<JobStore['addJob']>) {
    await this.right.addJob(...given);
    return true;
  }
}

class ForgetsScopes extends Jobs {
  override addJob(job: Job, options: Parameters<JobStore['addJob']>[1]) {
    return this.right.addJob({ ...job, scope: {} }, options);
  }
}

test.each<[new (right: JobStore, conversations: ConversationLog) => Jobs, readonly string[]]>([
  [Jobs, []],
  [
    BeginsWhatIsDone,
    ['beginJob starts a job until it has its result, and returns missing for an unknown job'],
  ],
  [EntersEachResult, ['completeJob enters only the first result into the conversation, once']],
  [ForgetsTheSilent, ['unsentJobs returns jobs that were not sent, or were sent and then did not change']],
  [
    AddsTwice,
    [
      'addJob stores a job once, and job returns it unchanged',
      'addJob and completeJob accept one of several simultaneous calls, and job returns the result unchanged',
    ],
  ],
  [ForgetsScopes, ['addJob stores a job once, and job returns it unchanged']],
])('jobStoreConformance reports for %p the error: %j', async (Broken, wanted) => {
  const open = () => {
    const { store, advance } = opened();
    const { jobs, conversations } = store;
    return { jobs: new Broken(jobs, conversations), conversations, advance };
  };
  const told = await failing(jobStoreConformance({ name: 'S', open }));
  expect(told.map((title, index) => title.slice(0, wanted[index]?.length))).toEqual(wanted);
});

class AppendsAfterAny extends MemoryConversationStore {
  override async append(id: string, turn: ConversationTurn) {
    return super.append(id, { ...turn, after: (await this.load(id))?.turnId });
  }
}

class LooksThenWrites extends MemoryConversationStore {
  override async append(id: string, turn: ConversationTurn) {
    const before = await this.load(id);
    if (before?.turnId !== turn.after) return false;
    await new Promise((resolve) => setImmediate(resolve));
    return super.append(id, { ...turn, after: (await this.load(id))?.turnId });
  }
}

class KeepsTextAlone extends MemoryConversationStore {
  override append(id: string, turn: ConversationTurn) {
    const messages = turn.messages.map(({ role, content }) => ({ role, content }));
    return super.append(id, { ...turn, messages });
  }
}

class ForgetsCase extends MemoryConversationStore {
  override load(id: string) {
    return super.load(id.toLowerCase());
  }
  override append(id: string, turn: ConversationTurn) {
    return super.append(id.toLowerCase(), turn);
  }
}

test.each<[new () => MemoryConversationStore, readonly string[]]>([
  [MemoryConversationStore, []],
  [AppendsAfterAny, ['append accepts a turn only after']],
  [LooksThenWrites, ['append accepts one of several simultaneous turns']],
  [KeepsTextAlone, ['append stores texts and the other fields of a reply unchanged']],
  [ForgetsCase, ['append keeps conversations with similar ids separate']],
])('conversationStoreConformance reports for %p the error: %j', async (Broken, wanted) => {
  const told = await failing(
    conversationStoreConformance({ name: 'S', open: () => ({ store: new Broken() }) }),
  );
  expect(told.map((title, index) => title.slice(0, wanted[index]?.length))).toEqual(wanted);
});
