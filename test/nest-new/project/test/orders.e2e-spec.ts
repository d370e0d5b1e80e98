import { INestApplication } from '@nestjs/common';
import { Test, TestingModule } from '@nestjs/testing';
import request from 'supertest';
import { App } from 'supertest/types.js';
import { ToolRegistry } from 'toolwright';
import { AppModule } from './../src/app.module.js';

describe('Orders (e2e)', () => {
  let app: INestApplication<App>;

  beforeEach(async () => {
    const moduleFixture: TestingModule = await Test.createTestingModule({
      imports: [AppModule],
    }).compile();
    app = moduleFixture.createNestApplication();
    await app.init();
  });

  afterEach(() => app.close());

  it('/tools/place_order (POST)', () => {
    const order = { email: 'ada@example.org', lines: [{ sku: 'tea-1', quantity: 2 }] };
    return request(app.getHttpServer())
      .post('/tools/place_order')
      .send(order)
      .expect(200, { forLLM: '{"id":"order_1","isValidated":true}', isError: false });
  });

  it('/tools/place_order (POST) with an invalid order', async () => {
    const order = { email: 'not an address', lines: [] };
    const { text } = await request(app.getHttpServer()).post('/tools/place_order').send(order).expect(200);
    expect(text).toContain('"isError":true');
    expect(text).toContain('email');
  });

  it('uses the descriptions of the generated file', () => {
    const definition = JSON.stringify(app.get(ToolRegistry).getDefinitions());
    expect(definition).toContain('Where the receipt goes');
  });
});
