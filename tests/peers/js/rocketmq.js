'use strict';
// A JavaScript client of RocketMQ on a broker. One line of JSON a scenario: what arrived.

const { Consumer, Message, Producer } = require('ali-ons');

const [names, topic] = process.argv.slice(2);
const quiet = { info() {}, warn() {}, debug() {}, error: console.error };
const httpclient = { request() { throw new Error('no address server is asked'); } };
const options = { nameSrv: names, accessKeyId: 'someone', accessKeySecret: 'secret', httpclient, logger: quiet };

function told(scenario, got) {
  console.log(JSON.stringify({ scenario, got }));
}

function message(body, tag) {
  const one = new Message(topic, tag, body);
  one.keys = [ 'k1', 'k2' ];
  return one;
}

async function send() {
  const producer = new Producer({ ...options, producerGroup: 'js-producer' });
  await producer.ready();
  const sent = [];
  for (let number = 0; number < 10; number++) {
    const result = await producer.send(message('m' + number, number % 2 ? 'odd' : 'even'));
    sent.push(result.sendStatus);
  }
  told('send', sent);
  return producer;
}

/** Consumes until so many came; the first of `refused` is sent back, and has to come again. */
function consume(group, expression, wanted, more = {}, refused = null) {
  return new Promise((resolve, reject) => {
    const got = [];
    const consumer = new Consumer({ ...options, consumerGroup: group, consumeFromWhere: 'CONSUME_FROM_FIRST_OFFSET', ...more });
    // The first look for a retry topic comes before the heartbeat that makes it, as on any broker.
    consumer.on('error', error => /RETRY/.test(error.message) || reject(error));
    consumer.subscribe(topic, expression, async one => {
      const body = one.body.toString();
      if (body === refused && !one.reconsumeTimes) return Consumer.ACTION_RETRY;
      got.push(body + (one.reconsumeTimes ? ' again' : ''));
      if (got.length === wanted) {
        resolve(got.sort());
      }
    });
  });
}

async function main() {
  await send();
  const scenarios = {
    clustering: consume('js-all', '*', 10),
    tags: consume('js-odd', 'odd', 5),
    broadcasting: consume('js-loud', '*', 10, { isBroadcast: true }),
  };
  for (const [ scenario, got ] of Object.entries(scenarios)) {
    told(scenario, await got);
  }
  process.exit(0);
}

main().catch(error => {
  console.error(error);
  process.exit(1);
});
