// What people type into the site's search, and the page or section that has to come first.
"use strict";
const searches = [
  ["bonjour", "reference/transports/mdns.html"],
  ["wifi", "guides/why-not-found.html#tcp-wi-fi-and-ethernet"],
  ["bt", "guides/why-not-found.html#bluetooth"],
  ["airdrop", "commands/nigh-send.html"],
  ["install", "guides/install.html"],
  ["how do I send a file to another device", "commands/nigh-send.html"],
  ["resume transfer", "commands/nigh-transfers-resume.html"],
  ["discov", "commands/nigh-discover.html"],
  ["firewall", "guides/why-not-found.html#n15-the-firewall-tcpfirewall"],
  ["multicast", "guides/why-not-found.html#n17-multicast-tcpmulticast"],
  ["slow link", "guides/faq.html#why-is-my-transfer-or-link-slow"],
  ["reconnecting", "guides/changing-wires.html"],
  ["without internet", "guides/faq.html#does-it-work-without-internet-account-and-server"],
  ["headless", "guides/recipes.html#4-send-a-folder-to-a-machine-without-a-screen"],
  ["pair two devices", "guides/security.html#pair-two-devices"],
  ["backpressure", "guides/slow-readers.html"],
  ["rpc", "guides/sending.html#questions"],
  ["multipeer", "guides/from-multipeerconnectivity.html"],
  ["latency", "guides/recipes.html#6-measure-the-round-trip"],
  ["simulate a bad network", "guides/testing.html"],
];
