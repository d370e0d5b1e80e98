import { Logger } from '@nestjs/common';
import type { ToolDefinition } from '../../contract/tool-definition.js';
import { loggedFields } from '../../invocation/log-field.js';
import { createRedaction, type Redaction } from '../../invocation/redact.js';
import type { ToolRegistry } from '../../registry/tool-registry.js';
import { LogEntry } from './log-entry.js';
import type { ToolwrightModuleOptions } from './module-options.js';

/** Which tools a request sees, by the `visible` of the options: those of which it says `true`, and nothing else. */
export class ToolVisibility {
  readonly #visible: ToolwrightModuleOptions['visible'];
  readonly #redaction: Redaction;
  readonly #logger = new Logger('Toolwright');

  constructor({ visible, redact }: Pick<ToolwrightModuleOptions, 'visible' | 'redact'>) {
    this.#visible = visible;
    this.#redaction = createRedaction(redact);
  }

  /** Whether anything may be hidden at all. */
  get isLimited(): boolean {
    return this.#visible !== undefined;
  }

  async shows(request: object | undefined, tool: ToolDefinition): Promise<boolean> {
    if (this.#visible === undefined) return true;
    try {
      return (await this.#visible(request as never, tool)) === true;
    } catch (error) {
      const fields = loggedFields({ error }, this.#redaction);
      this.#logger.error(new LogEntry(`The tool '${tool.name}' is hidden: visible threw`, fields));
      return false;
    }
  }

  /** The names of the tools that a request does not see. */
  async hidden(request: object | undefined, tools: ToolRegistry): Promise<readonly string[]> {
    if (this.#visible === undefined) return [];
    const all = tools.tools();
    const shown = await Promise.all(all.map((tool) => this.shows(request, tool)));
    return all.filter((_tool, index) => !shown[index]).map(({ name }) => name);
  }
}
