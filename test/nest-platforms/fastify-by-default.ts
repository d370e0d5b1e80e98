/** What `NestFactory.create` takes where no adapter is given: so the specs that name none run on Fastify. */
export { FastifyAdapter as ExpressAdapter } from '@nestjs/platform-fastify';
