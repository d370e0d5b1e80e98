/** `NestFactory.create` uses the Express adapter by default, so tests without an adapter run on Fastify. */
export { FastifyAdapter as ExpressAdapter } from '@nestjs/platform-fastify';
