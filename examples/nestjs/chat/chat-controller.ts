import type { ServerResponse } from 'node:http';
import { Body, ConflictException, Controller, NotFoundException, Param, Post, Res } from '@nestjs/common';
import type { ToolLoopResult } from 'toolwright';
import { ToolwrightService } from 'toolwright/nestjs';
import { CurrentUser } from '../auth/current-user.js';
import { AnswersBody, ChatBody } from './chat-bodies.js';
import { type Conversation, Conversations } from './conversations.js';
import { EventStream } from './event-stream.js';

type Me = { readonly id: string };

/** Chats with the model about the caller's own orders. */
@Controller('chat')
export class ChatController {
  constructor(
    private readonly toolwright: ToolwrightService,
    private readonly conversations: Conversations,
  ) {}

  /** One turn, as server-sent events: `text-delta`, `call-end`, and finally `done`. */
  @Post()
  async chat(@CurrentUser() me: Me, @Body() body: ChatBody, @Res() response: ServerResponse): Promise<void> {
    const conversation = this.open(me, body.conversationId);
    if (conversation.runId !== undefined) throw new ConflictException('the conversation waits for answers');
    const stream = new EventStream(response);
    const messages = [...conversation.messages, { role: 'user', content: body.text } as const];
    const run = this.toolwright.stream(messages, { signal: stream.signal });
    for await (const event of run) {
      if (event.type === 'text-delta') stream.send(event.type, { text: event.text });
      if (event.type === 'call-end')
        stream.send(event.type, {
          tool: event.tool,
          isError: event.result.isError,
          text: event.result.forLLM,
        });
    }
    const result = await run.result;
    this.conversations.keep(conversation.id, result);
    stream.send('done', summary(conversation, result));
    stream.end();
  }

  /**
   * Answers the pending calls of a run, which continues from the store in this process. Its owner may answer, and a
   * clerk for the owner; the run refuses everybody else.
   */
  @Post(':id/answers')
  async answer(@Param('id') id: string, @Body() body: AnswersBody) {
    const conversation = this.conversations.waiting(id);
    if (conversation === undefined) throw new NotFoundException('there is no such conversation');
    if (conversation.runId === undefined) throw new ConflictException('the conversation waits for nothing');
    const result = await this.toolwright.resumeStored(conversation.runId, body.answers);
    this.conversations.keep(id, result);
    const answered = result.toolCalls.flatMap(({ name, answeredBy }) =>
      answeredBy === undefined ? [] : [{ tool: name, answeredBy }],
    );
    return { ...summary(conversation, result), answered };
  }

  private open(me: Me, id: string | undefined): Conversation {
    if (id === undefined) return this.conversations.begin(me.id);
    const known = this.conversations.find(me.id, id);
    if (known === undefined) throw new NotFoundException('there is no such conversation');
    return known;
  }
}

function summary({ id }: Conversation, { status, content, pending = [] }: ToolLoopResult) {
  return { conversationId: id, status, content, pending };
}
