import { type ToolResult, userResult } from 'toolwright';
import { Tool, Toolset } from 'toolwright/decorators';
import { type Reminder, ReminderList } from '../services/reminder-list.js';
import { asList, counted } from './as-list.js';

/** What the user wants to be reminded of. */
@Toolset()
export class RemindersTools {
  constructor(private readonly reminders: ReminderList) {}

  /**
   * List the reminders, the most urgent first
   * @param includeDone Also those that are done
   */
  @Tool({ annotations: { readOnly: true } })
  listReminders(includeDone = false): string {
    const found = this.reminders.list({ includeDone });
    if (found.length === 0) return 'There is nothing to do.';
    return asList(counted(found.length, 'reminder'), found.map(describe));
  }

  /**
   * Add a reminder
   * @param text What to be reminded of @minLength 1 @maxLength 500
   * @param due The day it is due, YYYY-MM-DD @format date
   */
  @Tool({ sequential: true })
  addReminder(text: string, due: Date): ToolResult {
    return userResult(`I will remind you: ${describe(this.reminders.add(text, due))}.`);
  }

  /**
   * Complete a reminder that is done
   * @param id Number of the reminder, as listed @integer @minimum 1
   */
  @Tool({ sequential: true })
  completeReminder(id: number): ToolResult {
    return userResult(`Done: ${describe(this.reminders.complete(id))}.`);
  }
}

function describe({ id, text, dueOn, done }: Reminder): string {
  return `#${id} ${text}, ${done ? 'done' : `due ${dueOn}`}`;
}
