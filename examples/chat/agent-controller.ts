import { All, Controller, Req, UseGuards } from '@nestjs/common';
import { ToolwrightService } from 'toolwright/nestjs';
import { AuthGuard } from './auth-guard.js';

/** The same chats for AG-UI clients, on a separate route. */
@Controller('api/agent')
@UseGuards(AuthGuard)
export class AgentController {
  constructor(private readonly toolwright: ToolwrightService) {}

  @All()
  chat(@Req() request: object) {
    return this.toolwright.chat(request, { protocol: 'ag-ui' });
  }
}
