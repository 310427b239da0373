/* main.c: placeholder until the command table exists. */
int main(void)
{
    return 0;
}
