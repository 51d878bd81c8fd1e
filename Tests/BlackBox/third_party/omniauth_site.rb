# OmniAuth's OpenID Connect strategy in a Rack application: /login, the callback, and who is signed in at /me.
require "json"
require "rack"
require "rack/session/cookie"
require "omniauth"
require "omniauth_openid_connect"
require "webrick"

$stdout.sync = true
settings = JSON.parse($stdin.gets)
redirect = URI(settings["redirect_uri"])
OmniAuth.config.allowed_request_methods = [:get]
OmniAuth.config.silence_get_warning = true
OmniAuth.config.logger = Logger.new($stderr)

application = Rack::Builder.new do
  use Rack::Session::Cookie, secret: "x" * 64, key: "site"
  use OmniAuth::Builder do
    provider :openid_connect, name: :op, issuer: settings["issuer"], discovery: true, response_type: :code, send_nonce: true,
                              scope: %i[openid email offline_access], client_auth_method: :basic, post_logout_redirect_uri: settings["goodbye"],
                              client_options: { identifier: settings["client_id"], secret: settings["client_secret"], redirect_uri: redirect.to_s }
  end
  run lambda { |env|
    request = Rack::Request.new(env)
    answer = case request.path
             when redirect.path
               auth = env["omniauth.auth"]
               request.session[:id_token] = auth.credentials.id_token
               { sub: auth.uid, email: auth.info.email, expires: auth.credentials.expires_in, refresh: !auth.credentials.refresh_token.to_s.empty? }
             when "/auth/failure" then { failure: request.params["message"] }
             else { path: request.path }
             end
    [200, { "Content-Type" => "application/json" }, [JSON.generate(answer)]]
  }
end

server = WEBrick::HTTPServer.new(BindAddress: "127.0.0.1", Port: redirect.port, Logger: WEBrick::Log.new($stderr), AccessLog: [])
server.mount("/", Rack::Handler::WEBrick, application.to_app)
$stdout.puts JSON.generate(listening: true)
server.start
