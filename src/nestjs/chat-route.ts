import { All, type CanActivate, Controller, Inject, Req, type Type, UseGuards } from '@nestjs/common';
import { checkOptions } from '../errors/author-fault.js';
import { FILLED_TEXT, LIST, oneOf, optionTable, protecting } from '../kernel/options.js';
import type { ChatRequestOptions } from './application-chats.js';
import { ToolwrightService } from './toolwright-service.js';

/** A ready route of chats. */
export interface ChatRouteOptions extends Pick<ChatRequestOptions, 'protocol'> {
  /** Default: `chat`. */
  readonly path?: string;
  /** Guards of this route, beside the application's own. */
  readonly guards?: readonly (Type<CanActivate> | CanActivate)[];
}

const OPTIONS = optionTable<ChatRouteOptions>('ToolwrightModule.forChat', {
  path: FILLED_TEXT,
  protocol: oneOf('ui-messages', 'ag-ui', 'events'),
  guards: protecting(LIST),
});

/** A controller that answers the requests of chats below a path, for a module of its own. */
export function chatController(options: ChatRouteOptions): Type {
  checkOptions(options, OPTIONS);
  const { path = 'chat', guards = [], protocol } = options;
  const settings = protocol === undefined ? {} : { protocol };

  @UseGuards(...guards)
  @Controller(path)
  class ToolwrightChatController {
    readonly #toolwright: ToolwrightService;

    constructor(@Inject(ToolwrightService) toolwright: ToolwrightService) {
      this.#toolwright = toolwright;
    }

    @All(['', ':id/stream', ':id/messages'])
    chat(@Req() request: object): Promise<Response | undefined> {
      return this.#toolwright.chat(request, settings);
    }
  }
  return ToolwrightChatController;
}
