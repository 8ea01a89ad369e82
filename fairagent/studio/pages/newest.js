// Many questions after each other of which only the newest has to be answered.

const PACE = 60;

// Calls `show` with what `ask(value, signal)` gives for the newest value. What is asked faster than it can be answered
// is left out, and what is under way when another is sent is aborted; the last value is always answered.
export function newest(ask, show, failed, clock = () => performance.now()) {
  let running = null;
  let timer = null;
  let took = 0;
  let sent = -Infinity;

  async function send(value) {
    if (running) {
      running.abort();
      // It was slower than thought: with another pace nothing would ever be answered while the slider moves.
      took = 1.5 * (clock() - sent);
    }
    const mine = new AbortController();
    running = mine;
    sent = clock();
    try {
      const found = await ask(value, mine.signal);
      if (mine !== running) return;
      took = clock() - sent;
      show(found);
    } catch (error) {
      if (!mine.signal.aborted) failed(error);
    } finally {
      if (mine === running) running = null;
    }
  }

  return {
    ask(value) {
      clearTimeout(timer);
      const wait = sent + Math.max(PACE, took) - clock();
      if (wait > 0) timer = setTimeout(send, wait, value);
      else send(value);
    },
    stop() {
      clearTimeout(timer);
      running?.abort();
      running = null;
    },
  };
}
