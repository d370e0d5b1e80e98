import { Body, Controller, HttpCode, Param, Post } from '@nestjs/common';
import { ToolRegistry } from 'toolwright';

@Controller('tools')
export class OrdersController {
  constructor(private readonly tools: ToolRegistry) {}

  @Post(':name')
  @HttpCode(200)
  async call(@Param('name') name: string, @Body() args: unknown) {
    const { forLLM, isError } = await this.tools.execute(name, args);
    return { forLLM, isError };
  }
}
