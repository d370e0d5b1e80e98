import { Test, TestingModule } from '@nestjs/testing';
import { ToolRegistry } from 'toolwright';
import { ToolwrightModule } from 'toolwright/nestjs';
import { OrdersModule } from './orders.module.js';
import { OrdersService } from './orders.service.js';

describe('OrderTools', () => {
  let module: TestingModule;
  let tools: ToolRegistry;

  beforeEach(async () => {
    module = await Test.createTestingModule({
      imports: [ToolwrightModule.forRoot(), OrdersModule],
    }).compile();
    await module.init();
    tools = module.get(ToolRegistry);
  });

  afterEach(() => module.close());

  it('finds the tools of the module', () => {
    expect(tools.list()).toEqual(['place_order', 'show_order']);
  });

  it('passes a validated instance of the class to the tool', async () => {
    const placed = await tools.execute('place_order', {
      email: 'ada@example.org',
      lines: [{ sku: 'tea-1', quantity: '2' }],
    });
    expect(placed.forLLM).toBe('{"id":"order_1","isValidated":true}');
    expect(module.get(OrdersService).find('order_1')?.lines[0]?.quantity).toBe(2);
    expect((await tools.execute('show_order', { id: 'order_1' })).forLLM).toBe(
      '[{"sku":"tea-1","quantity":2}]',
    );
  });

  it('rejects arguments that break the rules of the class', async () => {
    const rejected = await tools.execute('place_order', {
      email: 'not an address',
      lines: [{ sku: 'tea-1', quantity: 100 }],
    });
    expect(rejected.isError).toBe(true);
    expect(rejected.forLLM).toContain('email');
    expect(rejected.forLLM).toContain('quantity');
    expect(module.get(OrdersService).find('order_1')).toBeUndefined();
  });

  it('returns the message of a RetryToolCall to the model', async () => {
    expect((await tools.execute('show_order', { id: 'order_9' })).forLLM).toContain(
      'There is no order order_9',
    );
  });
});
