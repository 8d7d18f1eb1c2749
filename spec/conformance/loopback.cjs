// Preloaded into the suite's origin: it listens on the loopback and nowhere else, whatever it was told.
'use strict'
const net = require('node:net')
const listen = net.Server.prototype.listen
net.Server.prototype.listen = function (port, ...rest) {
  return listen.call(this, { host: '127.0.0.1', port: Number(port) }, ...rest.filter(r => typeof r === 'function'))
}
