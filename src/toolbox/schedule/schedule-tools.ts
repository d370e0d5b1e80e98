import { Param, Tool, ToolContext, Toolset } from '../../../decorators/index.js';
import type { Schedule, ScheduleTiming } from '../../core/contract/schedule-store.js';
import type { ToolDefinition } from '../../core/contract/tool.js';
import { errorResult, type ToolResult, toolResult } from '../../core/contract/tool-result.js';
import type { ResourceAccess } from '../../core/contract/touch.js';
import { toolsOfInstances } from '../../tools/discovery/discover-tools.js';
import { Schedules, type SchedulesOptions } from './schedules.js';

const YEAR_MINUTES = 366 * 24 * 60;

const TEXT = {
  description: 'What you will be told then: all you need to know to do it',
  minLength: 1,
  maxLength: 4_000,
};
const AT = { description: 'Once, at this time: 2030-05-17T09:00', type: () => String, required: false };
const IN_MINUTES = {
  description: 'Once, so many minutes from now',
  type: () => Number,
  required: false,
  minimum: 0.1,
  maximum: 10 * YEAR_MINUTES,
};
const EVERY_MINUTES = {
  description: 'Again and again, with so many minutes in between',
  type: () => Number,
  required: false,
  minimum: 1,
  maximum: YEAR_MINUTES,
};
const CRON = {
  description: 'By a cron expression of five fields: 0 9 * * MON-FRI',
  type: () => String,
  required: false,
  maxLength: 200,
};
const TIME_ZONE = {
  description: 'Time zone of at and cron: Europe/Vienna',
  type: () => String,
  required: false,
  maxLength: 100,
};

/**
 * Tools that let a model schedule prompts: at the given time, a message from the model enters the conversation and
 * starts a turn. They need a conversation in the store (`Conversations`).
 *
 * @example
 * ```ts
 * const store = new SqliteRunStore({ path: 'runs.sqlite' });
 * container.register(Schedules, { useValue: new Schedules({ store, timeZone: 'Europe/Vienna' }) });
 * tools.register(...discoverTools({ toolsets: [ScheduleTools] }));
 * ```
 */
@Toolset({ name: 'Schedule' })
export class ScheduleTools {
  constructor(protected readonly schedules: Schedules) {}

  @Tool({
    description:
      'Schedule something for later in this conversation. When its time has come, your text arrives as a new message, and you act on it then. Say when by exactly one of at, inMinutes, everyMinutes and cron.',
    annotations: {
      title: 'Schedule',
      readOnly: false,
      destructive: false,
      idempotent: true,
      openWorld: false,
    },
    sequential: true,
    touches: 'touchesOfNew',
  })
  async schedulePrompt(
    @Param({ ...TEXT, required: true }) text: string,
    @Param(AT) at?: string,
    @Param(IN_MINUTES) inMinutes?: number,
    @Param(EVERY_MINUTES) everyMinutes?: number,
    @Param(CRON) cron?: string,
    @Param(TIME_ZONE) timeZone?: string,
    context?: ToolContext,
  ): Promise<ToolResult> {
    const of = ownerOf(context);
    if (of === undefined) return errorResult(NO_CONVERSATION);
    // A call that is repeated after a crash must not schedule twice, even if its prompt has already been delivered.
    const once = { key: context?.idempotencyKey, onlyKnown: true, onlyOnce: true };
    const wanted = { ...of, at, inMinutes, everyMinutes, cron, timeZone, text, ...once };
    const said = Object.entries(wanted).filter(([, value]) => value !== undefined && value !== null);
    const added = await this.schedules.add(Object.fromEntries(said) as typeof wanted);
    if (!added.ok) return errorResult(`Nothing was scheduled: ${added.problem}.`);
    const zone = timeZone ?? this.schedules.timeZone;
    const { schedule, now } = added;
    const rest = schedule.timing.kind === 'once' ? '' : `, then ${describeTiming(schedule.timing)}`;
    return toolResult(
      `Scheduled as ${schedule.id}: ${describeTime(schedule.dueAt, zone)}${rest}. It is now ${describeTime(now, zone)}.`,
    );
  }

  @Tool({
    description: 'List what is scheduled in this conversation.',
    annotations: { title: 'List schedules', readOnly: true },
  })
  async listSchedules(context?: ToolContext): Promise<ToolResult> {
    const of = ownerOf(context);
    if (of === undefined) return errorResult(NO_CONVERSATION);
    return toolResult(this.#describe(await this.schedules.list(of)));
  }

  @Tool({
    description: 'Cancel something that is scheduled in this conversation.',
    annotations: {
      title: 'Cancel schedule',
      readOnly: false,
      destructive: true,
      idempotent: true,
      openWorld: false,
    },
    sequential: true,
    touches: 'touchesOfEnd',
  })
  async cancelSchedule(
    @Param({ description: 'Its id, as list_schedules gives it', required: true }) id: string,
    context?: ToolContext,
  ): Promise<ToolResult> {
    const of = ownerOf(context);
    if (of === undefined) return errorResult(NO_CONVERSATION);
    if (await this.schedules.cancel(id, of)) return toolResult(`${id} is cancelled.`);
    const left = this.#describe(await this.schedules.list(of));
    return errorResult(
      `There is no schedule '${id}': it was due, it was cancelled, or it never was. ${left}`,
    );
  }

  /** A schedule that would be refused accesses nothing: the call fails before an approval is requested. */
  async touchesOfNew(_: unknown, context?: ToolContext): Promise<readonly ResourceAccess[] | 'as annotated'> {
    const of = ownerOf(context);
    return of !== undefined && (await this.schedules.reaches(of.conversationId)) ? 'as annotated' : [];
  }

  /** Cancelling a schedule that does not exist accesses nothing. */
  async touchesOfEnd(
    { id }: { readonly id?: unknown },
    context?: ToolContext,
  ): Promise<readonly ResourceAccess[] | 'as annotated'> {
    const of = ownerOf(context);
    const own = of === undefined ? [] : await this.schedules.list(of);
    return own.some((schedule) => schedule.id === id) ? 'as annotated' : [];
  }

  #describe(schedules: readonly Schedule[]): string {
    if (schedules.length === 0) return 'Nothing is scheduled.';
    const lines = schedules.map(({ id, timing, dueAt, text }) => {
      const zone = timing.kind === 'cron' ? timing.timeZone : this.schedules.timeZone;
      return `- ${id}: ${describeTime(dueAt, zone)}, ${describeTiming(timing)}: ${text}`;
    });
    return ['Scheduled:', ...lines].join('\n');
  }
}

const NO_CONVERSATION = 'There is no conversation here that something could be scheduled in.';

/** The conversation and owner of the schedules that a call may see. */
function ownerOf(context: ToolContext | undefined) {
  const { conversationId, owner } = context ?? {};
  if (conversationId === undefined) return undefined;
  return owner === undefined ? { conversationId } : { conversationId, owner };
}

function describeTiming(timing: ScheduleTiming): string {
  if (timing.kind === 'once') return 'once';
  if (timing.kind === 'every') return `every ${timing.everyMs / 60_000} minutes`;
  return `by cron ${timing.cron}`;
}

/** With the day of the week, so that a model notices weekends: `Tue 2030-05-14 09:00 Europe/Vienna`. */
function describeTime(time: number, timeZone: string): string {
  const day = new Intl.DateTimeFormat('en', { weekday: 'short', timeZone }).format(time);
  const clock = new Intl.DateTimeFormat('sv', { dateStyle: 'short', timeStyle: 'short', timeZone });
  return `${day} ${clock.format(time)} ${timeZone}`;
}

/**
 * Creates `schedule_prompt`, `list_schedules` and `cancel_schedule` without a container.
 *
 * @throws InvalidOptionsError (521).
 *
 * @example
 * ```ts
 * const store = new SqliteRunStore({ path: 'runs.sqlite' });
 * tools.register(...scheduleTools({ store, timeZone: 'Europe/Vienna' }));
 * ```
 */
export function scheduleTools(options: SchedulesOptions): ToolDefinition[] {
  return toolsOfInstances(new ScheduleTools(new Schedules(options)));
}
