import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { discoverTools, ToolRegistry } from 'toolwright';
import { calculateTool, getCurrentTimeTool } from 'toolwright/builtin';
import { container, instanceCachingFactory } from 'tsyringe';
import { makeFolder } from './make-folder.js';
import { CLOCK, type Clock } from './services/clock.js';
import { DATA_FOLDER } from './services/data-folder.js';
import { DATABASE } from './services/database.js';
import { NoteFolder } from './services/note-folder.js';
import { openDatabase } from './services/open-database.js';
import { ContactsTools } from './tools/contacts-tools.js';
import { InvoicesTools } from './tools/invoices-tools.js';
import { NotesTools } from './tools/notes-tools.js';
import { RemindersTools } from './tools/reminders-tools.js';
import './toolwright.gen.js';
import { UserFault } from './user-fault.js';

/** The tools and services of the assistant, open until `close`. */
export interface Desk extends Disposable {
  readonly tools: ToolRegistry;
}

/** Opens the data folder and discovers the tools. Throws a {@link UserFault} if the folder cannot be used. */
export function openDesk(dataFolder: string): Desk {
  container.register(DATA_FOLDER, { useValue: dataFolder });
  container.register<Clock>(CLOCK, { useValue: () => new Date() });
  container.register(DATABASE, {
    useFactory: instanceCachingFactory((services) =>
      openDatabase(join(dataFolder, 'assistant.db'), services.resolve<Clock>(CLOCK)),
    ),
  });
  const database = prepare(dataFolder);
  const toolsets = [NotesTools, ContactsTools, InvoicesTools, RemindersTools];
  const tools = new ToolRegistry().register(
    ...discoverTools({ toolsets }),
    calculateTool,
    getCurrentTimeTool,
  );
  return { tools, [Symbol.dispose]: () => database.close() };
}

/** Opens folder, database and notes first, so that their errors are reported as the user's, not the author's. */
function prepare(dataFolder: string): DatabaseSync {
  try {
    makeFolder(dataFolder);
    const database = container.resolve<DatabaseSync>(DATABASE);
    container.resolve(NoteFolder);
    return database;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new UserFault(`cannot use the data folder ${dataFolder}: ${reason}`, { cause });
  }
}
