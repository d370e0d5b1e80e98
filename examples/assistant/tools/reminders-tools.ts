import { type ToolResult, userResult } from 'toolwright';
import { Integer, Param, Tool, Toolset } from 'toolwright/decorators';
import { type Reminder, ReminderList } from '../services/reminder-list.js';
import { asList, counted } from './as-list.js';

/** What the user wants to be reminded of. */
@Toolset()
export class RemindersTools {
  constructor(private readonly reminders: ReminderList) {}

  @Tool({ description: 'List the reminders, the most urgent first', annotations: { readOnly: true } })
  listReminders(@Param('Also those that are done') includeDone = false): string {
    const found = this.reminders.list({ includeDone });
    if (found.length === 0) return 'There is nothing to do.';
    return asList(counted(found.length, 'reminder'), found.map(describe));
  }

  @Tool({ description: 'Add a reminder', sequential: true })
  addReminder(
    @Param({ description: 'What to be reminded of', minLength: 1, maxLength: 500 }) text: string,
    @Param({ description: 'The day it is due, YYYY-MM-DD', format: 'date' }) due: Date,
  ): ToolResult {
    return userResult(`I will remind you: ${describe(this.reminders.add(text, due))}.`);
  }

  @Tool({ description: 'Complete a reminder that is done', sequential: true })
  completeReminder(
    @Param({ description: 'Number of the reminder, as listed', type: () => Integer, minimum: 1 }) id: number,
  ): ToolResult {
    return userResult(`Done: ${describe(this.reminders.complete(id))}.`);
  }
}

function describe({ id, text, dueOn, done }: Reminder): string {
  return `#${id} ${text}, ${done ? 'done' : `due ${dueOn}`}`;
}
