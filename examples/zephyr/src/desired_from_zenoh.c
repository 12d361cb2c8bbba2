/* Desired motions by zenoh: `struct desired` on the key robot/desired_motion, `struct status` on robot/status. An empty
 * message on robot/start asks to join again after a fault, one on robot/stop stops for good. */

#include <string.h>
#include <zenoh-pico.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

#include "desired.h"

#ifndef ZENOH_CONNECT
#define ZENOH_CONNECT "" /* the locator of a router, as tcp/192.0.2.1:7447; empty: it is searched for */
#endif

static void take_motion(z_loaned_sample_t *sample, void *unused)
{
  const z_loaned_bytes_t *payload = z_sample_payload(sample);
  struct desired motion;
  (void)unused;
  if (z_bytes_len(payload) != sizeof(motion)) {
    printk("rejected a desired motion of %u bytes, %u are expected\n", (unsigned)z_bytes_len(payload),
           (unsigned)sizeof(motion));
    return;
  }
  z_bytes_reader_t reader = z_bytes_get_reader(payload);
  if (z_bytes_reader_read(&reader, (uint8_t *)&motion, sizeof(motion)) == sizeof(motion)) {
    desire(&motion);
  }
}

static void take_start(z_loaned_sample_t *sample, void *unused)
{
  (void)sample, (void)unused;
  ask_to_start();
}

static void take_stop(z_loaned_sample_t *sample, void *unused)
{
  (void)sample, (void)unused;
  ask_to_stop();
}

static int subscribe(const z_loaned_session_t *session, const char *key, z_closure_sample_callback_t take,
                     z_owned_subscriber_t *subscriber)
{
  z_owned_closure_sample_t closure;
  z_view_keyexpr_t name;
  if (z_view_keyexpr_from_str(&name, key) < 0 || z_closure_sample(&closure, take, NULL, NULL) < 0) {
    return -1;
  }
  return z_declare_subscriber(session, subscriber, z_view_keyexpr_loan(&name), z_closure_sample_move(&closure), NULL);
}

static int publish_status(const z_loaned_publisher_t *publisher)
{
  const struct status now = status_now();
  z_owned_bytes_t bytes;
  if (z_bytes_copy_from_buf(&bytes, (const uint8_t *)&now, sizeof(now)) < 0) {
    return -1;
  }
  return z_publisher_put(publisher, z_bytes_move(&bytes), NULL);
}

/* Until the connection is lost. The guard brakes meanwhile, as no motion comes. */
static void serve(void)
{
  z_owned_config_t config;
  z_owned_session_t session;
  z_owned_subscriber_t motion, start, stop;
  z_owned_publisher_t publisher;
  z_view_keyexpr_t name;
  z_config_default(&config);
  if (strlen(ZENOH_CONNECT) > 0) {
    zp_config_insert(z_config_loan_mut(&config), Z_CONFIG_CONNECT_KEY, ZENOH_CONNECT);
  }
  if (z_open(&session, z_config_move(&config), NULL) < 0) {
    return;
  }
  const z_loaned_session_t *own = z_session_loan(&session);
  if (subscribe(own, "robot/desired_motion", take_motion, &motion) == 0 &&
      subscribe(own, "robot/start", take_start, &start) == 0 && subscribe(own, "robot/stop", take_stop, &stop) == 0 &&
      z_view_keyexpr_from_str(&name, "robot/status") == 0 &&
      z_declare_publisher(own, &publisher, z_view_keyexpr_loan(&name), NULL) == 0) {
    while (publish_status(z_publisher_loan(&publisher)) == 0) {
      k_sleep(K_MSEC(50));
    }
  }
  z_session_drop(z_session_move(&session));
}

static void run(void *first, void *second, void *third)
{
  (void)first, (void)second, (void)third;
  for (;;) {
    serve();
    printk("no connection by zenoh\n");
    k_sleep(K_MSEC(1000));
  }
}
K_THREAD_DEFINE(zenoh_thread, 4096, run, NULL, NULL, NULL, 6, 0, 0);
