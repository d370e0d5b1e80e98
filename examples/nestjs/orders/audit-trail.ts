import { DatabaseSync } from 'node:sqlite';
import { Inject, Injectable, Scope } from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import type { AuthedRequest } from '../auth/user.js';
import { DATABASE } from '../database/open-database.js';

/** Records who did what. Created for each request, also for calls of a model. */
@Injectable({ scope: Scope.REQUEST })
export class AuditTrail {
  constructor(
    @Inject(DATABASE) private readonly database: DatabaseSync,
    @Inject(REQUEST) private readonly request: AuthedRequest,
  ) {}

  record(action: string): void {
    const insert = this.database.prepare('INSERT INTO audit VALUES (?, ?, ?)');
    insert.run(new Date().toISOString(), this.request.user?.id ?? '', action);
  }
}
